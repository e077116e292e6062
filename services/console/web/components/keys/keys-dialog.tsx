/** What the keys of a page do. */
import { Dialog } from '../dialog.tsx'

export type Keys = readonly (readonly [key: string, text: string])[]

export function KeysDialog({
  open,
  onClose,
  keys,
}: {
  open: boolean
  onClose: () => void
  keys: Keys
}) {
  return (
    <Dialog onClose={onClose} open={open} title="Keys">
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2">
        {keys.map(([key, text]) => (
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
