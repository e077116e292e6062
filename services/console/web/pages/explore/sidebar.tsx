/** Beside the query: the views and their columns, the cookbook, and what was run before. */
import { useQuery } from '@tanstack/react-query'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time/time.tsx'
import { type PastQuery, useQueryHistory } from './query-history.ts'

export type Question = AnswerOf<'/admin/v1/sql/cookbook', 'get'>['data'][number]
type View = AnswerOf<'/admin/v1/sql/views', 'get'>['data'][number]

export const useViews = () =>
  useQuery({
    queryKey: ['sql-views'],
    queryFn: () => ok(api.GET('/admin/v1/sql/views')),
    staleTime: Number.POSITIVE_INFINITY,
  })

export const useCookbook = () =>
  useQuery({
    queryKey: ['sql-cookbook'],
    queryFn: () => ok(api.GET('/admin/v1/sql/cookbook')),
    staleTime: Number.POSITIVE_INFINITY,
  })

export function Sidebar({
  tenant,
  onQuestion,
  onPast,
  onView,
}: {
  tenant: string
  onQuestion: (question: Question) => void
  onPast: (query: PastQuery) => void
  onView: (view: View) => void
}) {
  return (
    <div className="px-3 pt-1 pb-3">
      <Tabs
        name="side"
        tabs={[
          { id: 'examples', label: 'Examples', content: <Cookbook onQuestion={onQuestion} /> },
          { id: 'schema', label: 'Schema', content: <Schema onView={onView} /> },
          { id: 'history', label: 'History', content: <History onPast={onPast} tenant={tenant} /> },
        ]}
      />
    </div>
  )
}

const listClasses = 'grid max-h-[34rem] gap-px overflow-y-auto'
const itemClasses = 'w-full rounded-md px-2 py-1.5 text-left hover:bg-hover'

function Cookbook({ onQuestion }: { onQuestion: (question: Question) => void }) {
  const cookbook = useCookbook()
  return (
    <Loaded query={cookbook}>
      {({ data }) => (
        <ul className={listClasses}>
          {data.map((question) => (
            <li key={question.name}>
              <button className={itemClasses} onClick={() => onQuestion(question)} type="button">
                {question.question}
              </button>
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  )
}

function Schema({ onView }: { onView: (view: View) => void }) {
  const views = useViews()
  return (
    <Loaded query={views}>
      {({ data }) => (
        <ul className={listClasses}>
          {data.map((view) => (
            <li key={view.name}>
              <details>
                <summary className="rounded-md px-2 py-1.5 hover:bg-hover" title={view.comment}>
                  <code className="font-mono text-sm">{view.name}</code>
                </summary>
                <p className="px-2 py-1 text-muted text-sm">{view.comment}</p>
                <Button className="mx-2 my-1" onClick={() => onView(view)} small>
                  Query it
                </Button>
                <dl className="grid gap-1.5 px-2 py-1">
                  {view.columns.map(({ name, type, comment }) => (
                    <div key={name}>
                      <dt className="flex flex-wrap gap-x-2">
                        <code className="font-mono text-sm">{name}</code>
                        <span className="text-muted text-xs break-all">{type}</span>
                      </dt>
                      <dd className="text-muted text-xs">{comment}</dd>
                    </div>
                  ))}
                </dl>
              </details>
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  )
}

function History({ tenant, onPast }: { tenant: string; onPast: (query: PastQuery) => void }) {
  const queries = useQueryHistory(tenant)
  return (
    <Loaded query={queries}>
      {(past) =>
        past.length === 0 ? (
          <Empty title="Nothing was run yet">
            Your latest queries of this tenant are listed here, from the audit log.
          </Empty>
        ) : (
          <ul className={listClasses}>
            {past.map((query) => (
              <li key={query.id}>
                <button className={itemClasses} onClick={() => onPast(query)} type="button">
                  <code className="line-clamp-2 font-mono text-xs break-all">
                    {toVisible(query.sql.replace(/\s+/g, ' '))}
                  </code>
                  <span className="text-muted text-xs">
                    <Time at={query.at} />
                  </span>
                </button>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}
