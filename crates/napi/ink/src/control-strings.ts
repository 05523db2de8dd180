// Detection of control strings: replies of the terminal that Ink does not know, and would pass on
// as typed text.

const ESC = '\u001b'

/** Characters after ESC that begin a control string: of OSC, DCS, APC, PM and SOS. */
const INTRODUCERS = ']P_^X'

/** Milliseconds of silence after which a string without an end is over. */
const SILENCE_MS = 100

/**
 * Milliseconds within which a lone ESC and the next input are one sequence. No user types so fast.
 */
const SPLIT_GAP_MS = 5

/** Finds control strings, which Ink emits in parts, each as an input of its own. */
export class ControlStrings {
  /** Introducer of the string that has not ended yet. */
  #introducer: string | null = null
  /** The last input, and its time. */
  #last = { input: '', at: -SILENCE_MS }

  /**
   * Takes the next input, as the terminal sent it. Returns the text after the end of a string, or
   * `null` if no part of the input belongs to a string.
   */
  take(input: string, at: number): string | null {
    const last = this.#last
    this.#last = { input, at }
    const silence = at - last.at
    const introducer = silence < SILENCE_MS ? this.#introducer : null
    this.#introducer = null
    if (introducer !== null) {
      if (input === `${ESC}\\`) return ''
      // Ink reads an ESC at the end of a chunk as the Esc key. Here the ESC may be the first half
      // of ST, which ends the string.
      if (last.input === ESC && input.startsWith('\\')) return input.slice(1)
      if (input === ESC || (last.input !== ESC && !input.startsWith(ESC))) return this.#continue(introducer, input)
      // Any other sequence aborts the string, as it does in terminals.
    }
    if (input.length === 2 && input.startsWith(ESC) && isIntroducer(input[1])) return this.#continue(input[1], '')
    const isSplit = last.input.endsWith(ESC) && silence < SPLIT_GAP_MS
    return isSplit && isIntroducer(input[0]) ? this.#continue(input[0], input.slice(1)) : null
  }

  /** Searches the text of a string for its end. Ctrl+C is both an end and a key. */
  #continue(introducer: string, text: string): string {
    const end = text.search(introducer === ']' ? /[\u0003\u0007]/ : /\u0003/)
    if (end === -1) {
      this.#introducer = introducer
      return ''
    }
    return text.slice(text[end] === '\u0003' ? end : end + 1)
  }
}

function isIntroducer(character: string | undefined): character is string {
  return character !== undefined && INTRODUCERS.includes(character)
}
