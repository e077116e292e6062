/** The vocabularies of the catalog's signals for readers. */
import {
  categories,
  type SignalDefinition,
  serverCategories,
} from '#shared/core/signals/signal-definition.ts'
import { fullCatalog } from '#shared/core/signals/signals.ts'

const head = `<!-- Made by \`npm run generate\` from the signal catalog: do not edit. -->

# Values of signals

These signals have values that their platform defines. Other words for a value, and other cases of
its letters (\`SELF_SIGNED\`, \`self_signed\`, \`selfSigned\`), score as the value. Any other text
scores nothing, unless the tenant's policy weighs it. All other texts can be any text.
`

/** @returns the text of `shared/core/signals/VOCABULARY.md` */
export function renderVocabularyPage(): string {
  const sections = [...categories, ...serverCategories].flatMap((category) =>
    Object.entries<SignalDefinition>(fullCatalog[category]).flatMap(([name, definition]) =>
      definition.values === undefined ? [] : toSection(`${category}.${name}`, definition),
    ),
  )
  return `${head}\n${sections.join('\n\n')}\n`
}

function toSection(path: string, { description, type, values }: SignalDefinition): string {
  const kind = type === 'strings' ? 'A list' : 'A text'
  const words = Object.entries(values!).map(([value, others]) => {
    const also = others.length === 0 ? '' : `, or \`${others.join('`, `')}\``
    return `- \`${value}\`${also}`
  })
  return `## ${path}\n\n${description} ${kind} of:\n\n${words.join('\n')}`
}
