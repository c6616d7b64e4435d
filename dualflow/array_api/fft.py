"""The standard's Fourier transforms: ``dualflow.array_api.fft``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.array_api.transforms import fft as fft
    from dualflow.array_api.transforms import fftfreq as fftfreq
    from dualflow.array_api.transforms import fftn as fftn
    from dualflow.array_api.transforms import fftshift as fftshift
    from dualflow.array_api.transforms import hfft as hfft
    from dualflow.array_api.transforms import ifft as ifft
    from dualflow.array_api.transforms import ifftn as ifftn
    from dualflow.array_api.transforms import ifftshift as ifftshift
    from dualflow.array_api.transforms import ihfft as ihfft
    from dualflow.array_api.transforms import irfft as irfft
    from dualflow.array_api.transforms import irfftn as irfftn
    from dualflow.array_api.transforms import rfft as rfft
    from dualflow.array_api.transforms import rfftfreq as rfftfreq
    from dualflow.array_api.transforms import rfftn as rfftn

_publish(
    globals(),
    lazy={
        "dualflow.array_api.transforms": (
            "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn"
        ),
    },
)
