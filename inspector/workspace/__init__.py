"""What the user has at hand: sample models, and the list of code files that may run.

samples   the sample models, read from their files without importing one
trust     whose code may run: asked once for each content of a file
"""
