"""The documentation, read in the window.

page_view   one page: Markdown with its pictures, links that stay inside, headings that can be led to
reader      the dialog: the list of pages, a search over all of them, back and forward
"""
