"""The interface of a Keras backend."""

import os as _os

from keras import src as _keras

from dualflow.graph.origin import treat_as_internal as _treat_as_internal
from keras_dualflow.src import ops as ops
from keras_dualflow.src import random as random
from keras_dualflow.src import rnn as rnn
from keras_dualflow.src.core.conversion import IS_THREAD_SAFE as IS_THREAD_SAFE
from keras_dualflow.src.core.conversion import SUPPORTS_COMPLEX_DTYPES as SUPPORTS_COMPLEX_DTYPES
from keras_dualflow.src.core.conversion import SUPPORTS_RAGGED_TENSORS as SUPPORTS_RAGGED_TENSORS
from keras_dualflow.src.core.conversion import SUPPORTS_SPARSE_TENSORS as SUPPORTS_SPARSE_TENSORS
from keras_dualflow.src.core.output_spec import compute_output_spec as compute_output_spec
from keras_dualflow.src.core.scopes import device_scope as device_scope
from keras_dualflow.src.core.scopes import name_scope as name_scope
from keras_dualflow.src.core.variable import Variable as Variable

distribution_lib = None
_treat_as_internal(_os.path.dirname(_keras.__file__))
