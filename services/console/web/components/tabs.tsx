/** Tabs whose choice is in the URL. */
import { Tabs as Primitive } from 'radix-ui'
import type { ReactNode } from 'react'
import { scrollAcross } from './state/scroll-across.ts'
import { useUrlState } from './state/url-state.ts'

export function Tabs({
  tabs,
  name = 'tab',
}: {
  tabs: { id: string; label: ReactNode; content: ReactNode }[]
  /** The search parameter that holds the choice. */
  name?: string
}) {
  const first = tabs[0]?.id ?? ''
  const [chosen, choose] = useUrlState(name, first)
  const value = tabs.some(({ id }) => id === chosen) ? chosen : first
  return (
    <Primitive.Root onValueChange={choose} value={value}>
      <Primitive.List className="flex gap-4 overflow-x-auto border-line border-b">
        {tabs.map(({ id, label }) => (
          <Primitive.Trigger
            className={
              'h-9 border-transparent border-b-2 font-medium whitespace-nowrap text-muted ' +
              'hover:text-text focus-visible:-outline-offset-2 ' +
              'data-[state=active]:border-accent data-[state=active]:text-text'
            }
            key={id}
            ref={id === value ? scrollAcross : undefined}
            value={id}
          >
            {label}
          </Primitive.Trigger>
        ))}
      </Primitive.List>
      {tabs.map(({ id, content }) => (
        <Primitive.Content className="pt-4" key={id} tabIndex={-1} value={id}>
          {content}
        </Primitive.Content>
      ))}
    </Primitive.Root>
  )
}
