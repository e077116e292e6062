/** One suppression of a draft. What is wrong with a field is said once the field was left. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { MomentInput } from '../../../components/time/moment-input.tsx'
import { fleetOfWeekQuery } from '../../fleet/week-query.ts'
import { catalogQuery } from '../../signals/catalog-query.ts'
import type { Suppression } from '../policy-document.ts'
import { CheckedInput, toListError, useFocusWithin } from './checked-input.tsx'
import { PickField } from './pick-field.tsx'
import {
  toggleSignals,
  toPlatformChoices,
  toSignalChoices,
  toTypedChoice,
  toVersionChoices,
} from './suppression-choices.ts'

export function SuppressionRow({
  tenant,
  name,
  value,
  isNew,
  errorOf,
  onEditing,
  onChange,
  onRemove,
}: {
  tenant: string
  /** `Suppression 2`. */
  name: string
  value: Suppression
  /** It was just added: it takes the focus, and nothing is wrong with it before it was left. */
  isNew: boolean
  errorOf: (field: string) => string | undefined
  /** Called when the person begins and ends to change it. */
  onEditing: (isEditing: boolean) => void
  onChange: (next: Suppression) => void
  onRemove: () => void
}) {
  const catalog = useQuery(catalogQuery(tenant))
  const fleet = useQuery(fleetOfWeekQuery(tenant))
  const categories = catalog.data?.categories ?? []
  const versions = fleet.data?.versions ?? []
  const [wasLeft, setLeft] = useState(!isNew)
  const row = useRef<HTMLFieldSetElement>(null)
  const { isWithin, hasLeft, ...focus } = useFocusWithin()
  const tell = useRef(onEditing)
  useEffect(() => {
    tell.current = onEditing
  })
  useEffect(() => {
    if (isNew) row.current?.querySelector('button')?.focus()
  }, [isNew])
  useEffect(() => {
    tell.current(isWithin)
    return () => tell.current(false)
  }, [isWithin])
  useEffect(() => {
    if (hasLeft && !isWithin) setLeft(true)
  }, [hasLeft, isWithin])

  const toggle = (field: 'sdkVersions' | 'platforms', one: string) => {
    const { [field]: before = [], ...others } = value
    const next = before.includes(one) ? before.filter((each) => each !== one) : [...before, one]
    onChange(next.length === 0 ? others : { ...value, [field]: next })
  }
  const errorOfList = (field: 'signals' | 'sdkVersions' | 'platforms') =>
    toListError(errorOf, `.${field}`, value[field]?.length ?? 0)
  const unread = (isError: boolean, what: string) => isError && `${what} cannot be read now.`
  return (
    <fieldset
      className="grid min-w-0 grid-cols-[minmax(0,1fr)] items-start gap-3 rounded-md border border-line p-3 sm:grid-cols-2 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)_minmax(0,1fr)_minmax(0,1fr)_minmax(0,1.5fr)]"
      ref={row}
      {...focus}
    >
      <legend className="sr-only">{name}</legend>
      <PickField
        choices={toSignalChoices(categories)}
        error={errorOfList('signals')}
        label="Signals"
        none="Choose signals or flags"
        note={unread(catalog.isError, 'The catalog')}
        onToggle={(one) =>
          onChange({ ...value, signals: toggleSignals(value.signals ?? [], one, categories) })
        }
        values={value.signals ?? []}
        wasLeft={wasLeft}
      />
      <PickField
        choices={toVersionChoices(versions)}
        error={errorOfList('sdkVersions')}
        label="SDK versions"
        none="All"
        note={
          unread(fleet.isError, 'What the fleet has sent') ||
          'What the fleet has sent in the last 7 days.'
        }
        onToggle={(one) => toggle('sdkVersions', one)}
        toTyped={toTypedChoice}
        unit="devices"
        values={value.sdkVersions ?? []}
        wasLeft={wasLeft}
      />
      <PickField
        choices={toPlatformChoices(versions)}
        error={errorOfList('platforms')}
        label="Platforms"
        none="All"
        onToggle={(one) => toggle('platforms', one)}
        toTyped={toTypedChoice}
        values={value.platforms ?? []}
        wasLeft={wasLeft}
      />
      <MomentInput
        error={wasLeft && !isWithin ? errorOf('.expiresAt') : undefined}
        hint={value.expiresAt === null ? 'Leave empty for no expiry.' : 'Midnight in UTC.'}
        kind="date"
        label="Until"
        onChange={(day) =>
          onChange({ ...value, expiresAt: day === '' ? null : `${day}T00:00:00Z` })
        }
        value={value.expiresAt?.slice(0, 10) ?? ''}
      />
      <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
        <CheckedInput
          error={errorOf('.reason')}
          label="Reason"
          onChange={({ target }) => onChange({ ...value, reason: target.value })}
          value={value.reason ?? ''}
          wasLeft={wasLeft}
        />
        <Button aria-label={`Remove ${name.toLowerCase()}`} onClick={onRemove}>
          Remove
        </Button>
      </div>
    </fieldset>
  )
}
