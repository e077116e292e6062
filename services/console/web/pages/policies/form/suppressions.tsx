/** Suppressions of a draft: signals that score nothing for an SDK version until a date. */
import { Button } from '../../../components/button.tsx'
import type { Search } from '../../../components/state/url-state.ts'
import { MomentInput } from '../../../components/time/moment-input.tsx'
import { serverNowMs } from '../../../components/time/server-clock.ts'
import type { FormProps, PolicyDocument, Suppression } from '../policy-document.ts'
import { CheckedInput } from './checked-input.tsx'

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

export function SuppressionList({ document, errorOf, onChange }: FormProps) {
  const list = Array.isArray(document.suppressions) ? document.suppressions : []
  const change = (next: Suppression[]) => onChange({ ...document, suppressions: next })
  const add = () => change([...list, { signals: [], sdkVersions: [], expiresAt: null, reason: '' }])
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
      {list.map((one, at) => (
        <SuppressionRow
          errorOf={(field) => errorOf(`$.suppressions[${at}]${field}`)}
          key={at}
          onChange={(next) => change(list.map((entry, index) => (index === at ? next : entry)))}
          onRemove={() => change(list.filter((_, index) => index !== at))}
          value={one}
        />
      ))}
    </section>
  )
}

function SuppressionRow({
  value,
  errorOf,
  onChange,
  onRemove,
}: {
  value: Suppression
  errorOf: (field: string) => string | undefined
  onChange: (next: Suppression) => void
  onRemove: () => void
}) {
  const setList = (name: 'sdkVersions' | 'platforms', text: string) => {
    const { [name]: _, ...others } = value
    const next = text.split(',').map((one) => one.trim())
    onChange(text.trim() === '' ? others : { ...value, [name]: next })
  }
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-3 rounded-md border border-line p-3 sm:grid-cols-2 lg:grid-cols-5">
      <CheckedInput
        error={errorOf('.signals') ?? errorOf('.signals[0]')}
        label="Signals"
        mono
        onChange={({ target }) =>
          onChange({ ...value, signals: target.value.split(',').map((one) => one.trim()) })
        }
        placeholder="root.su_binary"
        value={(value.signals ?? []).join(',')}
      />
      <CheckedInput
        error={errorOf('.sdkVersions') ?? errorOf('.sdkVersions[0]')}
        label="SDK versions"
        onChange={({ target }) => setList('sdkVersions', target.value)}
        placeholder="all"
        value={(value.sdkVersions ?? []).join(',')}
      />
      <CheckedInput
        error={errorOf('.platforms') ?? errorOf('.platforms[0]')}
        label="Platforms"
        onChange={({ target }) => setList('platforms', target.value)}
        placeholder="all"
        value={(value.platforms ?? []).join(',')}
      />
      <MomentInput
        error={errorOf('.expiresAt')}
        hint={value.expiresAt === null ? 'Leave empty for no expiry.' : 'Midnight in UTC.'}
        kind="date"
        label="Until"
        onChange={(day) =>
          onChange({ ...value, expiresAt: day === '' ? null : `${day}T00:00:00Z` })
        }
        value={value.expiresAt?.slice(0, 10) ?? ''}
      />
      <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
        <div>
          <CheckedInput
            error={errorOf('.reason')}
            label="Reason"
            onChange={({ target }) => onChange({ ...value, reason: target.value })}
            value={value.reason ?? ''}
          />
        </div>
        <Button aria-label="Remove this suppression" onClick={onRemove}>
          Remove
        </Button>
      </div>
    </div>
  )
}
