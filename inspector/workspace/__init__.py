"""The user's environment: sample models, and the list of code files that may run.

samples   the sample models, read from their files without importing one
trust     which code may run: confirmed once for each content of a file
"""
