/** "Suggest from outcomes": start, progress that can be left, and the report of a suggestion. */
import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { Checkbox, controlClasses } from '../../../components/field.tsx'
import { Panel } from '../../../components/page.tsx'
import { Empty, Refused } from '../../../components/states.tsx'
import type { RuleFloor, RuleGroup } from '../policy-document.ts'
import { Progress } from '../progress.tsx'
import { SuggestionReport } from './suggestion-report.tsx'
import { cancelSuggestion, startSuggestion, useSuggestion } from './suggestion-run.ts'

export function SuggestionPanel({
  tenant,
  onDraft,
  onFloor,
  onGroup,
}: {
  tenant: string
  /** Takes a document as the draft. */
  onDraft: (document: unknown) => void
  /** Adds a floor to the draft. */
  onFloor: (floor: RuleFloor) => void
  /** Adds a group to the draft. */
  onGroup: (group: RuleGroup) => void
}) {
  const suggestion = useSuggestion(tenant)
  const [days, setDays] = useState('90')
  const [caps, setCaps] = useState(false)
  const [floors, setFloors] = useState(false)
  const running = suggestion?.running === true
  const report = suggestion?.report ?? null
  return (
    <Panel
      action={
        <div className="flex flex-wrap items-end gap-2">
          <select
            aria-label="Sessions of the suggestion"
            className={`${controlClasses} h-8 w-auto!`}
            onChange={({ target }) => setDays(target.value)}
            value={days}
          >
            <option value="30">Last 30 days</option>
            <option value="90">Last 90 days</option>
            <option value="400">Last 400 days</option>
          </select>
          {running ? (
            <Button onClick={() => cancelSuggestion(tenant)}>Cancel</Button>
          ) : (
            <Button
              look={report === null ? 'primary' : 'plain'}
              onClick={() => void startSuggestion(tenant, { days: Number(days), caps, floors })}
            >
              {report === null ? 'Suggest a policy' : 'Suggest again'}
            </Button>
          )}
        </div>
      }
      title="Suggest from outcomes"
    >
      <div className="flex flex-wrap gap-x-8 gap-y-2 border-line border-b px-4 py-3">
        <Checkbox
          checked={caps}
          hint="Also groups, halving and strong evidence: then all points add up, to 100 at most."
          label="Caps may be removed"
          onChange={({ target }) => setCaps(target.checked)}
        />
        <Checkbox
          checked={floors}
          hint="Where labels say enough of their signals. Without this they stay."
          label="Floors may be removed"
          onChange={({ target }) => setFloors(target.checked)}
        />
      </div>
      {running && <Running progress={suggestion.progress} />}
      {!running && suggestion?.error != null && (
        <div className="p-4">
          <Refused error={suggestion.error} />
        </div>
      )}
      {report !== null && (
        <SuggestionReport
          onDraft={onDraft}
          onFloor={onFloor}
          onGroup={onGroup}
          report={report}
          tenant={tenant}
        />
      )}
      {suggestion === null && (
        <Empty title="Nothing suggested yet">
          Weights are learnt from older sessions with a label, tested on the newer ones, and shown
          beside the policy in force. Nothing is published.
        </Empty>
      )}
    </Panel>
  )
}

function Running({ progress }: { progress: { slices_done: number; slices: number } | null }) {
  const { slices_done: done = 0, slices = 0 } = progress ?? {}
  const text =
    slices > 0 && done === slices
      ? 'All is read; learning and comparing.'
      : `${done} of ${slices} parts of the stored events are read.`
  return (
    <Progress
      noun="suggestion"
      share={slices === 0 ? 0 : done / slices}
      text={progress === null ? 'Planning the suggestion.' : text}
    />
  )
}
