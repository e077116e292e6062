/** Figures side by side, in groups of rows: what they are named, then one column for each policy. */
import type { ReactNode } from 'react'
import { classes } from '../../components/classes.ts'

export type FigureRow = { name: string; cells: ReactNode[]; muted?: boolean }
export type FigureGroup = { title?: string; rows: FigureRow[] }

/** The names stay in view while the rest scrolls. */
const nameClass = 'sticky left-0 z-10 w-28 border-line border-b px-3 py-1.5 text-left sm:w-56'

export function FiguresTable({
  label,
  heads,
  groups,
  minWidth,
}: {
  /** What the table is of, for screen readers. */
  label: string
  /** Of the names, then of the columns. */
  heads: string[]
  groups: FigureGroup[]
  /** A CSS width, below which it scrolls. */
  minWidth: string
}) {
  const [nameHead, ...others] = heads
  return (
    // biome-ignore lint/a11y/useSemanticElements: a region that scrolls must take the focus
    <div
      aria-label={label}
      className="overflow-x-auto"
      role="region"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll it
      tabIndex={0}
    >
      <table
        aria-label={label}
        className="w-full border-separate border-spacing-0"
        style={{ minWidth }}
      >
        <thead>
          <tr className="text-left text-muted text-sm">
            <th className={classes(nameClass, 'bg-panel font-medium')} scope="col">
              {nameHead}
            </th>
            {others.map((head) => (
              <th
                className="border-line border-b bg-panel px-3 py-1.5 font-medium"
                key={head}
                scope="col"
              >
                {head}
              </th>
            ))}
          </tr>
        </thead>
        {groups.map(({ title, rows }) => (
          <tbody key={title ?? ''}>
            {title !== undefined && (
              <tr>
                <th
                  className="border-line border-b px-3 pt-4 pb-1.5 text-left font-semibold"
                  colSpan={heads.length}
                  scope="rowgroup"
                >
                  <span className="sticky left-3">{title}</span>
                </th>
              </tr>
            )}
            {rows.map(({ name, cells, muted = false }) => (
              <tr className={muted ? 'text-muted' : undefined} key={name}>
                <th className={classes(nameClass, 'bg-raised font-normal')} scope="row">
                  {name}
                </th>
                {others.map((head, at) => (
                  <td className="border-line border-b px-3 py-1.5" key={head}>
                    {cells[at]}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </div>
  )
}
