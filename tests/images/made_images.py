"""made_images.py - small images made by hand: their layers, manifests and archives.

    image = Image([{"etc/motd": b"hello"}, {"bin/x": b"..."}], env=["A=1"])
    image.layout(folder)             # an OCI layout
    image.docker_archive(file)       # what `docker save` wrote before it wrote layouts
"""

import gzip
import hashlib
import io
import json
import tarfile

OCI = "application/vnd.oci.image"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar_of(files):
    """Of {name: bytes}, the same each time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


class Image:
    def __init__(self, layers, env=(), compress=True, architecture="amd64", user="", workdir="", cmd=None, entrypoint=None):
        self.tars = [tar_of(files) if isinstance(files, dict) else files for files in layers]  # or a whole tar
        self.blobs = [gzip.compress(data, 1, mtime=0) if compress else data for data in self.tars]
        config = {"Env": list(env), "User": user, "WorkingDir": workdir, "Cmd": cmd, "Entrypoint": entrypoint}
        self.config = json.dumps({"architecture": architecture, "os": "linux", "config": config,
                                  "rootfs": {"type": "layers", "diff_ids": [digest(t) for t in self.tars]}}).encode()
        kind = f"{OCI}.layer.v1.tar" + ("+gzip" if compress else "")
        self.manifest = self.written({"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json",
                                      "config": self.entry(f"{OCI}.config.v1+json", self.config),
                                      "layers": [self.entry(kind, blob) for blob in self.blobs]})
        self.platform = {"os": "linux", "architecture": architecture}

    @staticmethod
    def written(value):
        return json.dumps(value).encode()

    @staticmethod
    def entry(kind, data, **more):
        return {"mediaType": kind, "digest": digest(data), "size": len(data), **more}

    @property
    def digest(self):
        return digest(self.manifest)

    def members(self, tag="x"):
        """The files of a layout."""
        index = {"schemaVersion": 2, "manifests": [
            self.entry(f"{OCI}.manifest.v1+json", self.manifest, annotations={"org.opencontainers.image.ref.name": tag})]}
        blobs = [self.config, self.manifest, *self.blobs]
        return {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": self.written(index),
                **{"blobs/sha256/" + digest(b)[7:]: b for b in blobs}}

    def layout(self, folder, tag="x"):
        for name, data in self.members(tag).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return folder

    def layout_archive(self, path):
        path.write_bytes(tar_of(self.members()))
        return path

    def docker_archive(self, path, layers=None):
        """`layers`: in place of its own, whatever its configuration says."""
        names = [f"{digest(t)[7:]}/layer.tar" for t in self.tars]
        listed = [{"Config": "config.json", "RepoTags": ["x:latest"], "Layers": names}]
        path.write_bytes(tar_of({**dict(zip(names, layers or self.tars)), "config.json": self.config,
                                 "manifest.json": self.written(listed)}))
        return path


def index_of(*images):
    return Image.written({"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [
        Image.entry(f"{OCI}.manifest.v1+json", i.manifest, platform=i.platform) for i in images]})
