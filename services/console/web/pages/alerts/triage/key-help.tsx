/** What the keys of the list do. */
import { Dialog } from '../../../components/dialog.tsx'

type Keys = readonly (readonly [key: string, text: string])[]

const reading: Keys = [
  ['j', 'the next alert'],
  ['k', 'the alert before'],
  ['Esc', 'close the alert, or drop the selection'],
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
  return (
    <Dialog onClose={onClose} open={open} title="Keys">
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2">
        {(maySetDisposition ? [...reading, ...judging] : reading).map(([key, text]) => (
          <div className="contents" key={key}>
            <dt>
              <kbd className="inline-block min-w-6 rounded border border-line-strong bg-panel px-1.5 text-center font-sans text-sm">
                {key}
              </kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
