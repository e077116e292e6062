/** A field whose error is shown once it is left: nobody is told off while typing. */
import { type ComponentProps, type FocusEvent, useState } from 'react'
import { Input } from '../../../components/field.tsx'

/** Whether the focus is within an element, and what to put on it to know. */
export function useFocusWithin() {
  const [isWithin, setWithin] = useState(false)
  return {
    isWithin,
    onFocus: () => setWithin(true),
    onBlur: (event: FocusEvent) => {
      if (!event.currentTarget.contains(event.relatedTarget)) setWithin(false)
    },
  }
}

export function CheckedInput({ error, ...rest }: ComponentProps<typeof Input>) {
  const { isWithin, ...focus } = useFocusWithin()
  return <Input {...rest} {...focus} error={isWithin ? undefined : error} />
}

/** An empty field is no number, which the server then names. */
export const toPoints = (text: string): number =>
  text === '' ? (null as unknown as number) : Number(text)

/** Names with commas between them. */
export const toNames = (text: string): string[] => text.split(',').map((one) => one.trim())

/** What a list of errors says about an entry: of the entry itself, or of one of a list in it. */
export const toListError = (
  errorOf: (path: string) => string | undefined,
  path: string,
  length: number,
): string | undefined => {
  const own = errorOf(path)
  if (own !== undefined) return own
  for (let at = 0; at < length; at++) {
    const inner = errorOf(`${path}[${at}]`)
    if (inner !== undefined) return inner
  }
  return undefined
}
