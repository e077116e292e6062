/** What is done with the alerts that are selected. */
import { Button } from '../../../components/button.tsx'
import { type Disposition, dispositions } from '../../alert/alert.ts'
import { dispositionText } from '../../alert/disposition.tsx'

export function SelectionBar({
  count,
  onJudge,
  onDrop,
}: {
  count: number
  onJudge: ((to: Disposition) => void) | undefined
  onDrop: () => void
}) {
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-1.5 border-line border-t bg-panel p-2 pl-4">
      <span className="mr-1 font-medium" role="status">
        {count} selected
      </span>
      {onJudge &&
        dispositions.map((one) => (
          <Button key={one} onClick={() => onJudge(one)} small>
            {dispositionText(one)}
          </Button>
        ))}
      <Button look="quiet" onClick={onDrop} small>
        Drop
      </Button>
    </div>
  )
}
