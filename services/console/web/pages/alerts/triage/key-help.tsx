/** What the keys of the list do. */
import { type Keys, KeysDialog } from '../../../components/keys/keys-dialog.tsx'

const reading: Keys = [
  ['j', 'the next alert'],
  ['k', 'the alert before'],
  ['Esc', 'close the alert, or clear the selection'],
  ['Shift + click', 'select every alert between the last one and this one'],
  ['?', 'this help'],
]
const judging: Keys = [
  ['r', 'Reviewed'],
  ['f', 'False positive'],
  ['c', 'Confirmed'],
  ['o', 'Open'],
  ['a', 'assign to me'],
  ['x', 'select the alert; the keys above then act on all that are selected'],
  ['n', 'write a note'],
  ['u', 'undo the last change, within 8 seconds'],
]

export function KeyHelpDialog({
  open,
  onClose,
  maySetDisposition,
}: {
  open: boolean
  onClose: () => void
  /** Shows the keys that change alerts as well. */
  maySetDisposition: boolean
}) {
  const keys = maySetDisposition ? [...reading, ...judging] : reading
  return <KeysDialog keys={keys} onClose={onClose} open={open} />
}
