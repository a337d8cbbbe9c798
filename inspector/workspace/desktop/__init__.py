"""The menu entry, icon and file types of the desktop, as freedesktop.org describes them; other systems have none yet.

entry      what the files say
install    where they go, writing and removing them
icon.svg   the icon, which the window has too
"""
