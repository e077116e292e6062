/** Three buttons that judge the open alerts of a case, each with its key. */
import { Button } from '../../../components/button.tsx'
import { dispositionText } from '../../alert/disposition.tsx'
import type { Case } from '../case.ts'
import { judgementKeys, type useJudging } from './judging.ts'

export function JudgeButtons({
  shown,
  judging: { judged, judge },
}: {
  shown: Case
  judging: ReturnType<typeof useJudging>
}) {
  const isSaving = judged?.isSaved === false
  return (
    <fieldset className="flex flex-wrap gap-1">
      <legend className="sr-only">Judge the open alerts</legend>
      {Object.entries(judgementKeys).map(([key, to]) => (
        <Button
          aria-keyshortcuts={key}
          disabled={isSaving}
          key={key}
          onClick={() => judge(shown, to)}
        >
          {dispositionText(to)}
          <kbd className="font-sans text-muted text-xs uppercase">{key}</kbd>
        </Button>
      ))}
    </fieldset>
  )
}
