/** A form for a note; the key n leads to it. */
import type { FormEvent } from 'react'
import { Button } from '../../components/button.tsx'
import { Textarea } from '../../components/field.tsx'
import { Refused } from '../../components/states.tsx'
import { useMay } from '../../shell/operator.ts'
import { type Noted, useAddNote, useNoteDraft } from './notes.ts'

/** Nothing for those who may not write one. */
export function NoteForm({ of }: { of: Noted }) {
  const [text, setText] = useNoteDraft(of.id)
  const add = useAddNote(of)
  if (!useMay('analyst')) return null
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    if (text.trim() !== '' && !add.isPending) add.mutate(text.trim())
  }
  return (
    <form className="grid gap-2 border-line border-t px-4 py-3" onSubmit={submit}>
      <Textarea
        data-note
        label="Note"
        onChange={({ target }) => setText(target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit()
          if (event.key === 'Escape') event.currentTarget.blur()
        }}
        rows={2}
        value={text}
      />
      <Refused error={add.error} />
      <div>
        <Button busy={add.isPending} disabled={text.trim() === ''} type="submit">
          Add the note
        </Button>
      </div>
    </form>
  )
}
