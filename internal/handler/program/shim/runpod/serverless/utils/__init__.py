from ..._worker import lazy

__path__ = lazy.extended(__path__, __name__)

__getattr__ = lazy.attributes(
    __name__,
    {
        ".rp_download": ("download_files_from_urls",),
        ".rp_upload": ("upload_file_to_bucket", "upload_in_memory_object"),
        ".rp_volume_cache": ("VolumeCache",),
    },
)
