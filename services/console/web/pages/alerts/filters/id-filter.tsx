/** Filters by one device, user or session: typed here, shown as a chip that takes it away again. */
import { useState } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import { controlClasses } from '../../../components/field.tsx'
import { cutMiddle } from '../../../components/id.tsx'
import { useUrlSearch } from '../../../components/url-state.ts'
import { type IdFilter, idFilters } from './filter-values.ts'

export function IdFilterForm() {
  const [, change] = useUrlSearch()
  const [name, setName] = useState<IdFilter>('device_id')
  const [text, setText] = useState('')
  return (
    <form
      className="flex min-w-0 flex-1 basis-64 gap-1 sm:max-w-80"
      onSubmit={(event) => {
        event.preventDefault()
        if (text.trim() === '') return
        change({ [name]: text.trim() })
        setText('')
      }}
    >
      <select
        aria-label="Kind of id"
        className={`${controlClasses} h-8 w-auto!`}
        onChange={({ target }) => setName(target.value as IdFilter)}
        value={name}
      >
        {idFilters.map((one) => (
          <option key={one.name} value={one.name}>
            {one.text}
          </option>
        ))}
      </select>
      <input
        aria-label="Id"
        className={`${controlClasses} h-8 min-w-0 font-mono`}
        onChange={({ target }) => setText(target.value)}
        placeholder="id"
        spellCheck={false}
        value={text}
      />
      {text !== '' && <Button type="submit">Filter</Button>}
    </form>
  )
}

/** The ids that are filtered by, each with a button that removes it. */
export function IdChips() {
  const [search, change] = useUrlSearch()
  return idFilters.flatMap(({ name, text }) => {
    const value = search[name]
    if (!value) return []
    return [
      <span
        className="inline-flex h-8 items-center gap-1 rounded-md border border-accent pl-2.5"
        key={name}
      >
        <span className="text-muted">{text}</span>
        <span className="font-mono text-sm" title={value}>
          {cutMiddle(value)}
        </span>
        <IconButton
          icon="close"
          label={`Any ${text.toLowerCase()}`}
          onClick={() => change({ [name]: '' })}
        />
      </span>,
    ]
  })
}
