/** Suppressions of a draft: signals that score nothing for an SDK version until a date. */
import { lazy, Suspense, useState } from 'react'
import { Button } from '../../../components/button.tsx'
import type { Search } from '../../../components/state/url-state.ts'
import { Skeleton } from '../../../components/states.tsx'
import { serverNowMs } from '../../../components/time/server-clock.ts'
import type { FormProps, PolicyDocument, Suppression } from '../policy-document.ts'

const SuppressionRow = lazy(() =>
  import('./suppression-row.tsx').then((file) => ({ default: file.SuppressionRow })),
)

const dayMs = 86_400_000
const usualDays = 14

/** What a link to the editor may carry: a suppression that is added to the policy in force. */
export const suppressionParameters = ['suppress', 'versions', 'platforms', 'reason'] as const

/** The suppression that an address carries, or null. */
export function readSuppression(search: Search): Suppression | null {
  const signals = toList(search.suppress)
  if (signals.length === 0) return null
  const [versions, platforms] = [toList(search.versions), toList(search.platforms)]
  return {
    signals,
    ...(versions.length > 0 ? { sdkVersions: versions } : {}),
    ...(platforms.length > 0 ? { platforms } : {}),
    expiresAt: new Date(Math.ceil(serverNowMs() / dayMs + usualDays) * dayMs).toISOString(),
    reason: search.reason ?? 'A prevalence spike',
  }
}

export const addSuppression = (document: PolicyDocument, one: Suppression): PolicyDocument => ({
  ...document,
  suppressions: [...(document.suppressions ?? []), one],
})

const toList = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')

export function SuppressionList({ tenant, document, errorOf, onEditing, onChange }: FormProps) {
  const list = Array.isArray(document.suppressions) ? document.suppressions : []
  /** The place of one that was just added. */
  const [added, setAdded] = useState<number | null>(null)
  const change = (next: Suppression[]) => onChange({ ...document, suppressions: next })
  const add = () => {
    setAdded(list.length)
    change([...list, { signals: [], expiresAt: null, reason: '' }])
  }
  return (
    <section aria-label="Suppressions" className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <div className="flex items-center justify-between gap-2">
        <h3 className="font-medium">Suppressions</h3>
        <Button icon="plus" onClick={add} small>
          Add a suppression
        </Button>
      </div>
      {list.length === 0 && (
        <p className="text-muted text-sm">None. One switches signals off for a bad SDK release.</p>
      )}
      {list.map((one, at) => {
        const path = `$.suppressions[${at}]`
        return (
          <Suspense fallback={<Skeleton className="h-28" />} key={at}>
            <SuppressionRow
              errorOf={(field) => errorOf(path + field)}
              isNew={at === added}
              name={`Suppression ${at + 1}`}
              onChange={(next) => change(list.map((entry, index) => (index === at ? next : entry)))}
              onEditing={(isEditing) => {
                onEditing(isEditing ? path : null)
                if (!isEditing) setAdded(null)
              }}
              onRemove={() => change(list.filter((_, index) => index !== at))}
              tenant={tenant}
              value={one}
            />
          </Suspense>
        )
      })}
    </section>
  )
}
