/** What the keys of the queue do. */
import { type Keys, KeysDialog } from '../../components/keys/keys-dialog.tsx'

const reading: Keys = [
  ['j', 'the next case of the list'],
  ['k', 'the case before'],
  ['Esc', 'close the case'],
  ['?', 'this help'],
]
const judging: Keys = [
  ['g', 'get the next free case'],
  ['c', 'Confirmed: every open alert of the case, then the next case opens'],
  ['f', 'False positive, likewise'],
  ['r', 'Reviewed, likewise'],
  ['d', 'deny what was just judged'],
  ['w', 'allow what was just judged'],
  ['l', 'label what was just judged'],
  ['u', 'undo what was just done'],
  ['a', 'assign to me'],
  ['s', 'snooze until tomorrow'],
  ['n', 'write a note'],
]

export function CaseKeys({
  open,
  onClose,
  mayJudge,
}: {
  open: boolean
  onClose: () => void
  /** Shows the keys that change cases as well. */
  mayJudge: boolean
}) {
  return (
    <KeysDialog
      keys={mayJudge ? [...reading, ...judging] : reading}
      onClose={onClose}
      open={open}
    />
  )
}
