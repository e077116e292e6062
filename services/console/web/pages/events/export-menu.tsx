/** The list elsewhere: as SQL in Explore, its devices as a cohort, and all of it as a CSV. */
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Button } from '../../components/button.tsx'
import { Icon } from '../../components/icons.tsx'
import { Menu, MenuItem } from '../../components/menu.tsx'
import type { Search } from '../../components/state/url-state.ts'
import { useTimeRange } from '../../components/time/time-range.tsx'
import { toastFailure } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'
import { downloadCsv } from '../explore/download-csv.ts'
import type { EventsSql } from './event-sql.ts'

/** With the catalog, which the page itself does without. */
const loadSql = () => import('./event-sql.ts')

export function ExportMenu({ tenant, filters }: { tenant: string; filters: Search }) {
  const range = useTimeRange()
  const navigate = useNavigate()
  const may = useMay('analyst')
  const csv = useMutation({
    mutationFn: async (format: 'csv' | 'excel') => {
      const statement = (await loadSql()).toEventsSql(filters, range, null)
      await downloadCsv({ tenant, format, statement, name: `events-${tenant}.csv` })
    },
    onError: (error, format) =>
      toastFailure(`The CSV of events was not downloaded: ${error.message}`, {
        onRetry: () => csv.mutate(format),
      }),
  })
  if (!may) return null
  const open = async (toSql: (of: typeof import('./event-sql.ts')) => EventsSql) => {
    const { sql, parameters } = toSql(await loadSql())
    const named = Object.entries(parameters).map(([name, value]) => [`p.${name}`, value])
    const search = { sql, ...Object.fromEntries(named) }
    void navigate({ to: '/t/$tenant/explore', params: { tenant }, search })
  }
  return (
    <>
      <Button icon="explore" onClick={() => open(({ toEventsSql }) => toEventsSql(filters, range))}>
        Open as SQL
      </Button>
      <Menu
        trigger={
          <Button busy={csv.isPending}>
            Export
            <Icon name="down" size={12} />
          </Button>
        }
      >
        <MenuItem onSelect={() => open(({ toDevicesSql }) => toDevicesSql(filters, range))}>
          Devices as a cohort, in SQL
        </MenuItem>
        <MenuItem onSelect={() => csv.mutate('csv')}>Download CSV</MenuItem>
        <MenuItem onSelect={() => csv.mutate('excel')}>Download for Excel</MenuItem>
      </Menu>
    </>
  )
}
