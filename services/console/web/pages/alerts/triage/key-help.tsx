/** What the keys of the list do. */
import { Dialog } from '../../../components/dialog.tsx'

export type KeyHelp = readonly (readonly [keys: string, text: string])[]

export function KeyHelpDialog({
  open,
  onClose,
  keys,
}: {
  open: boolean
  onClose: () => void
  keys: KeyHelp
}) {
  return (
    <Dialog onClose={onClose} open={open} title="Keys">
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2">
        {keys.map(([key, text]) => (
          <div className="contents" key={key}>
            <dt className="flex items-start gap-1">
              {key.split(' ').map((one) => (
                <kbd
                  className="min-w-6 rounded border border-line-strong bg-panel px-1.5 text-center font-sans text-sm"
                  key={one}
                >
                  {one}
                </kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
