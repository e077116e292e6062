/** The filter by flags, which are found by name or code. How many each has is in the counts. */
import { findFlag } from '#shared/core/alerts/alert-sentence.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import { Button } from '../../components/button.tsx'
import { FilterButton } from '../../components/find/filter-button.tsx'
import { FindList, FindMenu } from '../../components/find/find-menu.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { toggleValue } from '../alerts/filters/filter-values.ts'

const nameOf = (code: string): string => findFlag(code)?.name ?? code

const choices = flagCodes.map((code) => ({ value: code, text: nameOf(code), code }))

export function FlagFilter() {
  const [list, setList] = useUrlState('flag')
  const chosen = list === '' ? [] : list.split(',')
  const more = chosen.length > 1 ? ` +${chosen.length - 1}` : ''
  const text = chosen[0] === undefined ? '' : nameOf(chosen[0]) + more
  return (
    <FindMenu label="Flag" trigger={<FilterButton label="Flag" text={text} />}>
      {() => (
        <FindList
          choices={choices}
          chosen={chosen}
          label="Flag"
          many
          onChoose={(code) => setList(toggleValue(list, code))}
        >
          {list !== '' && (
            <div className="border-line border-t p-1">
              <Button look="quiet" onClick={() => setList('')} small>
                Any flag
              </Button>
            </div>
          )}
        </FindList>
      )}
    </FindMenu>
  )
}
