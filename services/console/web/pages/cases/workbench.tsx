/** The queue: cases at the left, the case that is open at the right, worked by keyboard. */
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { Button, IconButton } from '../../components/button.tsx'
import { classes } from '../../components/classes.ts'
import { useLive } from '../../components/live-switch.tsx'
import { useTitle } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, SkeletonRows } from '../../components/states.tsx'
import { serverNowMs } from '../../components/time/server-clock.ts'
import { useMay, useSignedIn } from '../../shell/operator.ts'
import { focusNote, useNoteGuard } from '../alert/notes.ts'
import { useOpenRow } from '../alerts/list/use-open-row.ts'
import { useKeys } from '../alerts/triage/keys.ts'
import type { Case } from '../case/case.ts'
import { useChangeCase } from '../case/changes/changes.ts'
import { keysOfJudging, useJudging } from '../case/judging/judging.ts'
import { FilterBar } from './filters/filter-bar.tsx'
import { pickFilters } from './filters/filter-values.ts'
import { NextSwitch, useNextCase, useOpensNext } from './next-case.tsx'
import { QueuePane } from './queue-pane.tsx'
import { useCaseList } from './use-case-list.ts'
import { useLiveCases } from './use-live-cases.ts'

const dayMs = 86_400_000
const loadOpenCase = () => import('./open-case.tsx')
const OpenCase = lazy(() => loadOpenCase().then(({ OpenCase: shown }) => ({ default: shown })))
const JudgedBar = lazy(() => loadOpenCase().then(({ JudgedBar: shown }) => ({ default: shown })))
const SavedViews = lazy(() =>
  import('./filters/saved-views.tsx').then(({ SavedViews: shown }) => ({ default: shown })),
)
const CaseKeys = lazy(() =>
  import('./key-help.tsx').then(({ CaseKeys: shown }) => ({ default: shown })),
)

export function Workbench({ tenant }: { tenant: string }) {
  useTitle('Cases')
  const [search] = useUrlSearch()
  const filters = useMemo(() => pickFilters(search), [search])
  const list = useCaseList(tenant, filters)
  const live = useLiveCases(tenant, useLive())
  const [openId, open] = useOpenRow('case')
  const [help, setHelp] = useState(false)
  const mayJudge = useMay('analyst')
  const { assign, snooze } = useChangeCase()
  const { operator } = useSignedIn()
  const next = useNextCase(tenant, filters, { openId, open })
  const opensNext = useOpensNext()
  const judging = useJudging({ onJudged: opensNext ? next.get : () => undefined, onReturn: open })
  useNoteGuard()
  // The right pane comes after the list is on the screen, and before the first key.
  useEffect(() => void loadOpenCase(), [])

  const cases = useMemo(() => list.data?.pages.flatMap(({ data }) => data) ?? [], [list.data])
  const openAt = cases.findIndex(({ case_id: id }) => id === openId)
  const shown: Case | undefined = cases[openAt] ?? next.handedOut(openId)

  /** What a key acts on: the case as the right pane shows it. */
  const seen = useRef<Case>(undefined)
  const move = (step: number) => {
    const found = openAt < 0 ? cases[0] : cases[openAt + step]
    if (found !== undefined) open(found.case_id)
  }
  const act = (run: (one: Case) => void) => () => {
    const one = seen.current
    if (one?.case_id === openId) run(one)
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    '?': () => setHelp(true),
    ...(mayJudge
      ? {
          ...keysOfJudging(judging, () =>
            seen.current?.case_id === openId ? seen.current : undefined,
          ),
          g: next.get,
          a: act((one) => assign(one, operator.email)),
          s: act((one) => snooze(one, new Date(serverNowMs() + dayMs).toISOString())),
          n: focusNote,
        }
      : {}),
    Escape: () => open(''),
  })

  return (
    <div className="flex h-full min-h-0 flex-col">
      <header
        className={classes(
          'grid-cols-[minmax(0,1fr)] gap-3 border-line border-b p-4 sm:px-6 lg:grid',
          // On a narrow screen the case has all of it.
          openId === '' ? 'grid' : 'hidden',
        )}
      >
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
          <h1 className="font-semibold text-xl">Cases</h1>
          <Suspense fallback={<Button>Views</Button>}>
            <SavedViews tenant={tenant} />
          </Suspense>
          {mayJudge && (
            <Button aria-keyshortcuts="g" busy={next.isPending} look="primary" onClick={next.get}>
              Next case
              <kbd className="font-sans text-xs uppercase">g</kbd>
            </Button>
          )}
          <div className="ml-auto flex flex-wrap items-center gap-2">
            {mayJudge && <NextSwitch />}
            <IconButton icon="help" label="Keys" onClick={() => setHelp(true)} />
          </div>
        </div>
        <FilterBar tenant={tenant} />
      </header>
      <div className="grid min-h-0 flex-1 grid-cols-[minmax(0,1fr)] lg:grid-cols-[28rem_minmax(0,1fr)]">
        <section
          aria-label="Queue"
          className={classes(
            'min-h-0 flex-col border-line lg:flex lg:border-r',
            openId === '' ? 'flex' : 'hidden',
          )}
        >
          <QueuePane
            cases={cases}
            filters={filters}
            list={list}
            tenant={tenant}
            live={live}
            onOpen={open}
            openId={openId}
          />
        </section>
        <section
          aria-label="Case"
          className={classes('min-h-0 flex-col lg:flex', openId === '' ? 'hidden' : 'flex')}
        >
          {/* Each case is read from its top. */}
          <div className="min-h-0 flex-1 overflow-auto p-4 lg:px-6" key={openId}>
            {openId === '' ? (
              <Empty title="No case selected">
                {mayJudge
                  ? 'Press g for the next free case, or choose one at the left.'
                  : 'Choose one at the left, or press j for the first.'}
              </Empty>
            ) : (
              <>
                <Button className="mb-4 lg:hidden" onClick={() => open('')}>
                  Back to the queue
                </Button>
                <Suspense fallback={<SkeletonRows />}>
                  <OpenCase
                    caseId={openId}
                    inList={shown}
                    judging={judging}
                    onOpen={open}
                    onSeen={(one) => {
                      seen.current = one
                    }}
                  />
                </Suspense>
              </>
            )}
          </div>
          {judging.judged && (
            <Suspense>
              <JudgedBar judged={judging.judged} judging={judging} />
            </Suspense>
          )}
        </section>
      </div>
      {help && (
        <Suspense>
          <CaseKeys mayJudge={mayJudge} onClose={() => setHelp(false)} open />
        </Suspense>
      )}
    </div>
  )
}
