"""When does tiled attention pay, on this hardware, with this kernel, and is it right?"""
