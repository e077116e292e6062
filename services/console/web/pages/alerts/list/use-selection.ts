/** Which alerts are selected; other filters begin with none. */
import { useState } from 'react'
import { toRange } from './select-range.ts'

/**
 * @param order the ids of the list, for a range
 * @param openId where a range begins while none was checked
 * @returns `check` with `toHere` selects all from the last one that was checked to this one
 */
export function useSelection(
  filters: Record<string, string>,
  order: readonly string[],
  openId: string,
): {
  checked: ReadonlySet<string>
  check: (alertId: string, toHere?: boolean) => void
  clear: () => void
} {
  const of = JSON.stringify(filters)
  const [selected, setSelected] = useState<{ of: string; ids: Set<string>; last: string | null }>({
    of,
    ids: new Set(),
    last: null,
  })
  const isOwn = selected.of === of
  const checked = isOwn ? selected.ids : new Set<string>()
  return {
    checked,
    check: (id, toHere = false) => {
      const ids = new Set(checked)
      if (toHere)
        for (const one of toRange(order, (isOwn ? selected.last : null) ?? openId, id)) ids.add(one)
      else if (!ids.delete(id)) ids.add(id)
      setSelected({ of, ids, last: id })
    },
    clear: () => setSelected({ of, ids: new Set(), last: null }),
  }
}
