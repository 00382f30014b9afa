"""Add the files the package needs: the descriptors of the services, compiled from proto/, and libsluice's header."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

TREE = Path(__file__).resolve().parent.parent


class Build(build_py):
    def run(self):
        from grpc_tools import protoc

        super().run()
        into = Path(self.build_lib) / "sluice"
        for name, folder in (("fluxion", ""), ("fluxcli", ""), ("service", ""), ("fluxnetes", "fluxnetes")):
            proto = "fluxion" if folder else name
            if protoc.main(["protoc", f"-I{TREE / 'proto' / folder}", f"--descriptor_set_out={into / name}.pb", f"{proto}.proto"]):
                raise SystemExit(f"{proto}.proto cannot be compiled")
        shutil.copy(TREE / "include" / "sluice" / "sluice.h", into)
        (into / "py.typed").touch()


setup(cmdclass={"build_py": Build})
