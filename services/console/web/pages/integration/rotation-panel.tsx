/** The latest rotation on the page of a tenant: progress, and what each edge confirmed. */
import type { ReactNode } from 'react'
import { Badge, type Tone } from '../../components/badge.tsx'
import { Button, Spinner } from '../../components/button.tsx'
import { Panel } from '../../components/page.tsx'
import { Refused } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import type { Rotation } from './rotation.ts'

const states: Record<Rotation['state'], { tone: Tone; text: string }> = {
  running: { tone: 'accent', text: 'running' },
  done: { tone: 'good', text: 'done' },
  failed: { tone: 'bad', text: 'failed' },
  lost: { tone: 'bad', text: 'interrupted' },
}

export function RotationPanel({
  rotation,
  onShowKeys,
  showing,
  error,
}: {
  rotation: Rotation
  onShowKeys: () => void
  showing: boolean
  error: unknown
}) {
  const { state, new_keys: keys, failure } = rotation
  const { tone, text } = states[state]
  return (
    <Panel
      action={
        keys?.yours && (
          <Button busy={showing} icon="key" look="primary" onClick={onShowKeys} small>
            Show the new keys
          </Button>
        )
      }
      title="Latest rotation"
    >
      <div className="grid grid-cols-[minmax(0,1fr)] gap-2 px-4 py-3">
        <p>
          <Badge tone={tone}>{text}</Badge> <Time at={rotation.started_at} /> by{' '}
          <span className="break-words">{rotation.started_by}</span>
          {rotation.duration_ms !== null && `, it took ${toSeconds(rotation.duration_ms)}`}
        </p>
        {failure !== null && <p className="text-bad">{failure}</p>}
        {state === 'lost' && (
          <p>
            The console that rotated has ended. The old keys work again, unless the new ones were in
            force already, which are kept nowhere. Rotate once more.
          </p>
        )}
        {keys?.yours && (
          <p>
            The new keys are kept for you until <Time at={keys.until} exact />.
          </p>
        )}
        <Refused error={error} />
      </div>
      <EdgeTable rotation={rotation} />
    </Panel>
  )
}

/** A waiting edge confirms within two seconds, or its lease has run out. */
export function EdgeTable({ rotation }: { rotation: Rotation }) {
  const { edges, state, step } = rotation
  if (edges.length === 0) return null
  const isWaiting = (other: Rotation['step']) => state === 'running' && step === other
  return (
    // biome-ignore lint/a11y/useSemanticElements: a region that scrolls must take the focus
    <div
      aria-label="What the edges confirmed"
      className="max-h-64 overflow-auto border-line border-t"
      role="region"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll it
      tabIndex={0}
    >
      <table aria-label="What the edges confirmed" className="w-full min-w-96 text-sm">
        <thead>
          <tr className="text-left text-muted">
            {['Edge', 'Refuses the old secret', 'Accepts the new one'].map((head) => (
              <th className="px-4 py-1.5 font-medium" key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {edges.map((edge) => (
            <tr className="border-line border-t" key={edge.edge_id}>
              <td className="px-4 py-1.5 font-mono break-all">{edge.edge_id}</td>
              <td className="px-4 py-1.5">
                <Confirmation is={edge.old_off} waiting={isWaiting('old_off')} />
              </td>
              <td className="px-4 py-1.5">
                <Confirmation is={edge.new_on} waiting={isWaiting('new_on')} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Confirmation({
  is,
  waiting,
}: {
  is: Rotation['edges'][number]['old_off']
  waiting: boolean
}): ReactNode {
  if (is === null) {
    return waiting ? (
      <span className="inline-flex items-center gap-2">
        <Spinner /> waiting
      </span>
    ) : (
      <span className="text-muted">not yet</span>
    )
  }
  const isConfirmed = is.outcome === 'confirmed'
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      <Badge tone={isConfirmed ? 'good' : 'warn'}>
        {isConfirmed ? 'confirmed' : 'silent, lease run out'}
      </Badge>
      <Time at={is.at} />
    </span>
  )
}

export const toSeconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`
