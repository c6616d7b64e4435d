"""Signal processing: ``df.signal``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.signal.cosine import dct as dct
    from dualflow.ops.signal.cosine import idct as idct
    from dualflow.ops.signal.cosine import inverse_mdct as inverse_mdct
    from dualflow.ops.signal.cosine import mdct as mdct
    from dualflow.ops.signal.fourier import fft as fft
    from dualflow.ops.signal.fourier import fft2d as fft2d
    from dualflow.ops.signal.fourier import fft3d as fft3d
    from dualflow.ops.signal.fourier import fftnd as fftnd
    from dualflow.ops.signal.fourier import fftshift as fftshift
    from dualflow.ops.signal.fourier import ifft as ifft
    from dualflow.ops.signal.fourier import ifft2d as ifft2d
    from dualflow.ops.signal.fourier import ifft3d as ifft3d
    from dualflow.ops.signal.fourier import ifftnd as ifftnd
    from dualflow.ops.signal.fourier import ifftshift as ifftshift
    from dualflow.ops.signal.fourier import irfft as irfft
    from dualflow.ops.signal.fourier import irfft2d as irfft2d
    from dualflow.ops.signal.fourier import irfft3d as irfft3d
    from dualflow.ops.signal.fourier import irfftnd as irfftnd
    from dualflow.ops.signal.fourier import rfft as rfft
    from dualflow.ops.signal.fourier import rfft2d as rfft2d
    from dualflow.ops.signal.fourier import rfft3d as rfft3d
    from dualflow.ops.signal.fourier import rfftnd as rfftnd
    from dualflow.ops.signal.framing import frame as frame
    from dualflow.ops.signal.framing import overlap_and_add as overlap_and_add
    from dualflow.ops.signal.spectra import inverse_stft as inverse_stft
    from dualflow.ops.signal.spectra import inverse_stft_window_fn as inverse_stft_window_fn
    from dualflow.ops.signal.spectra import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
    from dualflow.ops.signal.spectra import mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms
    from dualflow.ops.signal.spectra import stft as stft
    from dualflow.ops.signal.windows import hamming_window as hamming_window
    from dualflow.ops.signal.windows import hann_window as hann_window
    from dualflow.ops.signal.windows import kaiser_bessel_derived_window as kaiser_bessel_derived_window
    from dualflow.ops.signal.windows import kaiser_window as kaiser_window
    from dualflow.ops.signal.windows import vorbis_window as vorbis_window

_publish(
    globals(),
    lazy={
        "dualflow.ops.signal.cosine": "dct idct inverse_mdct mdct",
        "dualflow.ops.signal.fourier": (
            "fft fft2d fft3d fftnd fftshift ifft ifft2d ifft3d ifftnd ifftshift irfft irfft2d irfft3d "
            "irfftnd rfft rfft2d rfft3d rfftnd"
        ),
        "dualflow.ops.signal.framing": "frame overlap_and_add",
        "dualflow.ops.signal.spectra": (
            "inverse_stft inverse_stft_window_fn linear_to_mel_weight_matrix "
            "mfccs_from_log_mel_spectrograms stft"
        ),
        "dualflow.ops.signal.windows": (
            "hamming_window hann_window kaiser_bessel_derived_window kaiser_window vorbis_window"
        ),
    },
)
