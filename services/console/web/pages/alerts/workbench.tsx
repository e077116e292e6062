/** The two panes of the alerts, and everything that they share: filters, selection and keys. */

import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { Button, buttonClasses, IconButton } from '../../components/button.tsx'
import { classes } from '../../components/classes.ts'
import { useTitle } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, SkeletonRows } from '../../components/states.tsx'
import { TimeRange } from '../../components/time/time-range.tsx'
import { undoLast } from '../../components/toast.tsx'
import { useMay, useSignedIn } from '../../shell/operator.ts'
import { useChangeAlerts } from '../alert/changes.ts'
import { focusNote, useNoteGuard } from '../alert/notes.ts'
import { useBulkJob } from './bulk/bulk-jobs.ts'
import { FilterBar } from './filters/filter-bar.tsx'
import { pickFilters } from './filters/filter-values.ts'
import { useAlertList } from './list/use-alert-list.ts'
import { useOpenRow } from './list/use-open-row.ts'
import { useSelection } from './list/use-selection.ts'
import { ListPane } from './list-pane.tsx'
import { useKeys } from './triage/keys.ts'
import { SelectionBar } from './triage/selection-bar.tsx'

const loadOpenAlert = () => import('./open-alert.tsx')
const KeyHelpDialog = lazy(() =>
  import('./triage/key-help.tsx').then(({ KeyHelpDialog: shown }) => ({ default: shown })),
)
const SavedViews = lazy(() =>
  import('./filters/saved-views.tsx').then(({ SavedViews: shown }) => ({ default: shown })),
)
const OpenAlert = lazy(() => loadOpenAlert().then(({ OpenAlert: shown }) => ({ default: shown })))

export function Workbench({ tenant }: { tenant: string }) {
  useTitle('Alerts')
  const [search] = useUrlSearch()
  const filters = useMemo(() => pickFilters(search), [search])
  const list = useAlertList(tenant, filters)
  const [openId, open] = useOpenRow('alert')
  const [help, setHelp] = useState(false)
  const maySetDisposition = useMay('analyst')
  const { operator } = useSignedIn()
  const { setDisposition, assign } = useChangeAlerts()
  const bulk = useBulkJob()
  useNoteGuard()
  // The right pane comes after the list is on the screen, and before the first key.
  useEffect(() => void loadOpenAlert(), [])

  const alerts = useMemo(() => list.data?.pages.flatMap(({ data }) => data) ?? [], [list.data])
  const order = useMemo(() => alerts.map(({ alert_id: id }) => id), [alerts])
  const { checked, check, clear } = useSelection(filters, order, openId)
  const openAt = alerts.findIndex(({ alert_id: id }) => id === openId)
  const shown = alerts[openAt]

  const move = (step: number) => {
    const next = openAt < 0 ? alerts[0] : alerts[openAt + step]
    if (next !== undefined) open(next.alert_id)
  }
  /** The alerts that a key acts on: those that are selected, else the one that is open. */
  const chosen = () => {
    const some = alerts.filter(({ alert_id: id }) => checked.has(id))
    return some.length > 0 ? some : shown === undefined ? [] : [shown]
  }
  const judge = (to: Disposition) => {
    setDisposition(chosen(), to)
    clear()
  }
  const judgeBy: Record<string, () => void> = {}
  for (const one of dispositions) judgeBy[one[0]!.toLowerCase()] = () => judge(one)
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Escape: () => (checked.size > 0 ? clear() : open('')),
    '?': () => setHelp(true),
    ...(maySetDisposition
      ? {
          ...judgeBy,
          u: undoLast,
          x: () => shown && check(shown.alert_id),
          a: () => assign(chosen(), operator.email),
          n: focusNote,
        }
      : {}),
  })

  return (
    <div className="flex h-full min-h-0 flex-col">
      <header
        className={classes(
          'gap-3 border-line border-b p-4 sm:px-6 lg:grid',
          // On a narrow screen the alert has all of it.
          openId === '' ? 'grid' : 'hidden',
        )}
      >
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
          <h1 className="font-semibold text-xl">Alerts</h1>
          <Suspense fallback={<Button>Views</Button>}>
            <SavedViews tenant={tenant} />
          </Suspense>
          <div className="ml-auto flex flex-wrap items-center gap-2">
            <Link
              className={`${buttonClasses()} no-underline!`}
              params={{ tenant }}
              to="/t/$tenant/bulk-changes"
            >
              Bulk changes
            </Link>
            <TimeRange usual="any" />
            <IconButton icon="help" label="Keys" onClick={() => setHelp(true)} />
          </div>
        </div>
        <FilterBar tenant={tenant} />
      </header>
      <div className="grid min-h-0 flex-1 grid-cols-[minmax(0,1fr)] lg:grid-cols-[26rem_minmax(0,1fr)]">
        <section
          aria-label="List"
          className={classes(
            'min-h-0 flex-col border-line lg:flex lg:border-r',
            openId === '' ? 'flex' : 'hidden',
          )}
        >
          <ListPane
            alerts={alerts}
            bulk={bulk}
            checked={checked}
            filters={filters}
            list={list}
            onCheck={check}
            onOpen={open}
            openId={openId}
            tenant={tenant}
          />
          {checked.size > 0 && (
            <SelectionBar
              checked={checked}
              onClear={clear}
              onSetDisposition={judge}
              onStarted={(jobId) => {
                clear()
                bulk.watch(jobId)
              }}
              tenant={tenant}
            />
          )}
        </section>
        <section
          aria-label="Alert"
          className={classes(
            'min-h-0 overflow-auto p-4 lg:block lg:px-6',
            openId === '' ? 'hidden' : 'block',
          )}
          // Each alert is read from its top.
          key={openId}
        >
          {openId === '' ? (
            <Empty title="No alert selected">
              Choose one at the left, or press j for the first.
            </Empty>
          ) : (
            <>
              <Button className="mb-4 lg:hidden" onClick={() => open('')}>
                Back to the list
              </Button>
              <Suspense fallback={<SkeletonRows />}>
                <OpenAlert
                  alertId={openId}
                  inList={shown}
                  onDisposition={(to, alert) => setDisposition([alert], to)}
                />
              </Suspense>
            </>
          )}
        </section>
      </div>
      {help && (
        <Suspense>
          <KeyHelpDialog
            maySetDisposition={maySetDisposition}
            onClose={() => setHelp(false)}
            open
          />
        </Suspense>
      )}
    </div>
  )
}
