"""The user's environment: sample models, and the list of code files that may run.

samples   the sample models, read from their files without importing one
cases     the scripts of small trainings with one fault each, read as text
trust     which code may run: confirmed once for each content of a file
"""
