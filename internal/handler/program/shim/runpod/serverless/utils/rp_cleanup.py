"""Removes what a job left in the working directory."""

import os
import shutil

_FOLDERS = ("input_objects", "output_objects", "job_files")


def clean(folder_list=None):
    """Remove the usual folders, the zip of outputs, and the given folders."""
    for folder in (*_FOLDERS, *(folder_list or ())):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists("output.zip"):
        os.remove("output.zip")
