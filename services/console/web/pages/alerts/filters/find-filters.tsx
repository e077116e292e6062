/** Filters whose values are found by typing: flags and SDK versions with counts, and assignees. */
import { useQuery } from '@tanstack/react-query'
import { unassigned } from '#shared/core/alerts/alert-filters.ts'
import { findFlag } from '#shared/core/alerts/alert-sentence.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { api, ok } from '../../../api/client.ts'
import { Button } from '../../../components/button.tsx'
import { FilterButton } from '../../../components/find/filter-button.tsx'
import type { FindChoice } from '../../../components/find/find-choices.ts'
import { FindList, FindMenu } from '../../../components/find/find-menu.tsx'
import { useUrlSearch, useUrlState } from '../../../components/state/url-state.ts'
import { serverNowMs } from '../../../components/time/server-clock.ts'
import { useSignedIn } from '../../../shell/operator.ts'
import { assigneesQuery } from '../../alert/assignees.ts'
import { pickFilters, toggleValue, toQuery } from './filter-values.ts'

type CountedBy = 'flag' | 'sdk_version'

/** How many alerts of the other filters have each value; read when the menu opens. */
function useCounts(tenant: string, by: CountedBy) {
  const [search] = useUrlSearch()
  const { [by]: _, ...others } = pickFilters(search)
  const counts = useQuery({
    queryKey: ['alert-counts', tenant, by, others],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/alerts/counts', {
          params: { path: { tenant_id: tenant }, query: { ...toQuery(others, serverNowMs()), by } },
        }),
      ),
    staleTime: 0,
  })
  return {
    values: counts.data?.data,
    note: counts.isError ? 'How many alerts have each cannot be read now.' : undefined,
  }
}

const toFlagChoice = (code: string): FindChoice => ({
  value: code,
  text: findFlag(code)?.name ?? code,
  code,
})

export function FlagFilter({ tenant }: { tenant: string }) {
  const [list, setList] = useUrlState('flag')
  const chosen = list === '' ? [] : list.split(',')
  const more = chosen.length > 1 ? ` +${chosen.length - 1}` : ''
  const text = chosen[0] === undefined ? '' : toFlagChoice(chosen[0]).text + more
  return (
    <FindMenu label="Flag" trigger={<FilterButton label="Flag" text={text} />}>
      {() => (
        <FlagList
          chosen={chosen}
          onChoose={(code) => setList(toggleValue(list, code))}
          onClear={() => setList('')}
          tenant={tenant}
        />
      )}
    </FindMenu>
  )
}

/** Those that alerts have first, most alerts on top; then all others by name. */
function FlagList({
  tenant,
  chosen,
  onChoose,
  onClear,
}: {
  tenant: string
  chosen: readonly string[]
  onChoose: (code: string) => void
  onClear: () => void
}) {
  const { values, note } = useCounts(tenant, 'flag')
  const counts = new Map(values?.map(({ value, alerts }) => [value, alerts]))
  // Without counts where they cannot be read.
  const noCount = note === undefined ? { count: values === undefined ? ('…' as const) : 0 } : {}
  const others = flagCodes.filter((code) => !counts.has(code)).map(toFlagChoice)
  const choices = [
    ...[...counts].map(([code, count]) => ({ ...toFlagChoice(code), count })),
    ...others
      .toSorted((a, b) => a.text.localeCompare(b.text))
      .map((choice) => ({ ...choice, ...noCount })),
  ]
  return (
    <FindList
      choices={choices}
      chosen={chosen}
      label="Flag"
      many
      note={note}
      onChoose={onChoose}
      unit="alerts"
    >
      {chosen.length > 0 && (
        <div className="border-line border-t p-1">
          <Button look="quiet" onClick={onClear} small>
            Any flag
          </Button>
        </div>
      )}
    </FindList>
  )
}

export function SdkVersionFilter({ tenant }: { tenant: string }) {
  const [version, setVersion] = useUrlState('sdk_version')
  return (
    <FindMenu label="SDK version" trigger={<FilterButton label="SDK version" text={version} />}>
      {(close) => (
        <SdkVersionList
          chosen={version}
          onChoose={(next) => {
            setVersion(next)
            close()
          }}
          tenant={tenant}
        />
      )}
    </FindMenu>
  )
}

const anyVersion: FindChoice = { value: '', text: 'Any version' }

function SdkVersionList({
  tenant,
  chosen,
  onChoose,
}: {
  tenant: string
  chosen: string
  onChoose: (version: string) => void
}) {
  const { values, note } = useCounts(tenant, 'sdk_version')
  const known = (values ?? []).map(({ value, alerts }) => ({
    value,
    text: value,
    count: alerts,
  }))
  const isKnown = chosen === '' || known.some(({ value }) => value === chosen)
  const own = isKnown ? [] : [{ value: chosen, text: chosen }]
  return (
    <FindList
      choices={[anyVersion, ...own, ...known]}
      chosen={[chosen]}
      label="SDK version"
      note={note ?? (values === undefined && 'Reading versions …')}
      onChoose={onChoose}
      unit="alerts"
    />
  )
}

/** Anyone, me, no operator, or another operator of the tenant who may judge. */
export function AssigneeFilter({ tenant }: { tenant: string }) {
  const { operator } = useSignedIn()
  const [assignee, setAssignee] = useUrlState('assignee')
  const usual: FindChoice[] = [
    { value: '', text: 'Anyone' },
    { value: operator.email, text: 'Me' },
    { value: unassigned, text: 'Unassigned' },
  ]
  const text = usual.find(({ value }) => value === assignee)?.text ?? assignee
  return (
    <FindMenu
      label="Assignee"
      trigger={<FilterButton label="Assignee" text={assignee === '' ? '' : text} />}
    >
      {(close) => (
        <AssigneeList
          chosen={assignee}
          onChoose={(next) => {
            setAssignee(next)
            close()
          }}
          tenant={tenant}
          usual={usual}
        />
      )}
    </FindMenu>
  )
}

function AssigneeList({
  tenant,
  usual,
  chosen,
  onChoose,
}: {
  tenant: string
  usual: readonly FindChoice[]
  chosen: string
  onChoose: (assignee: string) => void
}) {
  const { data, isPending, isError } = useQuery(assigneesQuery(tenant))
  const isUsual = (email: string) => usual.some(({ value }) => value === email)
  const others = (data?.data ?? []).filter(({ email }) => !isUsual(email))
  // A link may name one who has left.
  const isKnown = isUsual(chosen) || others.some(({ email }) => email === chosen)
  return (
    <FindList
      choices={[
        ...usual,
        ...(isKnown ? [] : [{ value: chosen, text: chosen }]),
        ...others.map(({ email, name }) => ({ value: email, text: name || email, code: email })),
      ]}
      chosen={[chosen]}
      label="Assignee"
      note={
        isError ? 'The other operators cannot be read now.' : isPending && 'Reading operators …'
      }
      onChoose={onChoose}
    />
  )
}
