from autograd_lab.capture import Recorder as Recorder
from autograd_lab.capture import record as record
from autograd_lab.capture import record_step as record_step
from autograd_lab.doors import device as device
from autograd_lab.doors import step_through as step_through
from autograd_lab.ops import CustomOp as CustomOp
from autograd_lab.ops import custom_op as custom_op
from autograd_lab.pytrees import save_pytree_for_backward as save_pytree_for_backward
from autograd_lab.pytrees import saved_ledger as saved_ledger
from autograd_lab.pytrees import unpack_saved as unpack_saved
from autograd_lab.recording import Recording as Recording
from autograd_lab.recording import SavedLedger as SavedLedger
from autograd_lab.recording import load_recording as load_recording
from autograd_lab.replay import Cursor as Cursor
from autograd_lab.replay import gradient_flow as gradient_flow
from autograd_lab.show import Stepper as Stepper
from autograd_lab.show import to_html as to_html

__version__: str
