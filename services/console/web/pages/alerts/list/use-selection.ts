/** Which alerts are selected; other filters begin with none. */
import { useState } from 'react'

export function useSelection(filters: Record<string, string>): {
  checked: ReadonlySet<string>
  check: (alertId: string) => void
  clear: () => void
} {
  const of = JSON.stringify(filters)
  const [selected, setSelected] = useState({ of, ids: new Set<string>() })
  const checked = selected.of === of ? selected.ids : new Set<string>()
  return {
    checked,
    check: (id) => {
      const ids = new Set(checked)
      if (!ids.delete(id)) ids.add(id)
      setSelected({ of, ids })
    },
    clear: () => setSelected({ of, ids: new Set() }),
  }
}
