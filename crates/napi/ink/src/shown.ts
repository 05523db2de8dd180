// Text of models and tools, made safe for a terminal: no character of it controls the terminal, is
// hidden or reorders others.

/**
 * Characters that control a terminal, are invisible, reorder others or break the line. Variation
 * selectors, which turn characters into emoji, are kept.
 */
const UNSAFE =
  /(?![\u{fe0e}\u{fe0f}])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}\u{fff0}-\u{fffb}\u{13441}\u{13442}]/gu

const escaped = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`

/**
 * Escapes text of several lines for the screen: every character that a terminal would act on, hide
 * or reorder is written as `\u{1b}`. Text that was escaped before stays as it is.
 */
export function shown(text: string): string {
  return text.replace(UNSAFE, (character) => (character === '\n' || character === '\t' ? character : escaped(character)))
}

/** Like `shown`, for a single line: line feeds and tabs are escaped as well. */
export function shownLine(text: string): string {
  return text.replace(UNSAFE, escaped)
}
