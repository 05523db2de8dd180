// What models and tools say, made safe to show: nothing in it gives orders to the terminal, hides or reorders.

/**
 * Characters that terminals act on, that are not seen, that reorder others or break the line. The selectors that make
 * emoji of characters may stay.
 */
const UNSEEN =
  /(?![\u{fe0e}\u{fe0f}])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}\u{fff0}-\u{fffb}\u{13441}\u{13442}]/gu

const writtenOut = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`

/**
 * Text as it may be put on a screen, over as many lines as it has: whatever a terminal would act on, hide or reorder is
 * written out as `\u{1b}`. What was written out already is left alone.
 */
export function shown(text: string): string {
  return text.replace(UNSEEN, (character) => (character === '\n' || character === '\t' ? character : writtenOut(character)))
}

/** The same on one line: line feeds and tabs are written out, too. */
export function shownLine(text: string): string {
  return text.replace(UNSEEN, writtenOut)
}
