/** Filters with a value that is typed here and shown as a chip, which takes it away again. */
import { useState } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import { controlClasses } from '../../../components/field.tsx'
import { cutMiddle } from '../../../components/id.tsx'
import { useUrlSearch } from '../../../components/state/url-state.ts'

type TypedFilter = { name: string; text: string }

export function TypedFilterForm({ filters }: { filters: readonly TypedFilter[] }) {
  const [, change] = useUrlSearch()
  const [name, setName] = useState(filters[0]!.name)
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
        aria-label="Filter by"
        className={`${controlClasses} h-8 w-auto! min-w-0 shrink`}
        onChange={({ target }) => setName(target.value)}
        value={name}
      >
        {filters.map((one) => (
          <option key={one.name} value={one.name}>
            {one.text}
          </option>
        ))}
      </select>
      <input
        aria-label="Value"
        className={`${controlClasses} h-8 w-24! min-w-24 grow font-mono`}
        onChange={({ target }) => setText(target.value)}
        placeholder="value"
        spellCheck={false}
        value={text}
      />
      {text !== '' && <Button type="submit">Filter</Button>}
    </form>
  )
}

/** The typed values that are filtered by, each with a button that removes it. */
export function FilterChips({ filters }: { filters: readonly TypedFilter[] }) {
  const [search, change] = useUrlSearch()
  return filters.flatMap(({ name, text }) => {
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
