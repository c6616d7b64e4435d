"""``v1.nn.rnn_cell``: the recurrent cells."""

from dualflow.compat.v1.recurrent.cells import BasicLSTMCell as BasicLSTMCell
from dualflow.compat.v1.recurrent.cells import BasicRNNCell as BasicRNNCell
from dualflow.compat.v1.recurrent.cells import DropoutWrapper as DropoutWrapper
from dualflow.compat.v1.recurrent.cells import GRUCell as GRUCell
from dualflow.compat.v1.recurrent.cells import LSTMCell as LSTMCell
from dualflow.compat.v1.recurrent.cells import LSTMStateTuple as LSTMStateTuple
from dualflow.compat.v1.recurrent.cells import MultiRNNCell as MultiRNNCell
from dualflow.compat.v1.recurrent.cells import ResidualWrapper as ResidualWrapper
from dualflow.compat.v1.recurrent.cells import RNNCell as RNNCell
from dualflow.core.namespace import publish as _publish

_publish(globals())
