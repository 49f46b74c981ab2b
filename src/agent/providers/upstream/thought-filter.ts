import { answerMarks, endMarks, loneCloses, mayHoldMark, type ThoughtForm, thoughtForms } from './thought-forms.ts';

/** A piece of an answer; `textWasThinking`: all text before it was. */
export type Sorted =
  | { readonly type: 'text' | 'thinking'; readonly text: string }
  | { readonly type: 'textWasThinking' };

/** Characters of the longest mark: at most so much text is held back. */
const longest = Math.max(
  ...[...thoughtForms.flatMap(({ open, close }) => [open, ...close]), ...answerMarks].map(({ length }) => length),
);

/**
 * Sorts the text of one answer into thoughts and text, as its pieces arrive: thoughts stand at the start, in a form of
 * `thoughtForms`. Where only their end is marked, the text before it turns out to be thoughts. Marks may be cut anywhere.
 */
export class ThoughtFilter {
  readonly #emit: (piece: Sorted) => void;
  #state: 'start' | 'thinking' | 'text' = 'start';
  #form: ThoughtForm | undefined;
  /** Text that may be part of a mark. */
  #held = '';
  /** Text of the answer so far, to judge the end of thoughts without a beginning; undefined: no such end can follow. */
  #shown: string | undefined = '';
  #hasThought = false;
  #hasMark = false;

  constructor(emit: (piece: Sorted) => void) {
    this.#emit = emit;
  }

  push(text: string): void {
    this.#held += text;
    this.#advance(false);
  }

  /** The answer has ended: nothing is held back. */
  end(): void {
    this.#advance(true);
  }

  #advance(isEnd: boolean): void {
    let state: string;
    do {
      state = this.#state;
      if (this.#state === 'start') this.#start(isEnd);
      else if (this.#state === 'thinking') this.#think(isEnd);
      else this.#speak(isEnd);
    } while (this.#state !== state);
  }

  #start(isEnd: boolean): void {
    const text = this.#held.trimStart();
    if (text === '' && !isEnd) return;
    const form = thoughtForms.find(({ open }) => hasStart(text, open));
    if (form) {
      this.#form = form;
      this.#held = text.slice(form.open.length);
      this.#state = 'thinking';
      return;
    }
    const mark = answerMarks.find((each) => hasStart(text, each));
    if (mark !== undefined) {
      this.#hasMark = true;
      this.#held = text.slice(mark.length);
    } else if (!isEnd && text.length < longest && isBeginning(text)) return;
    // Line breaks between thoughts and answer belong to neither.
    if (this.#hasThought || this.#hasMark) this.#held = this.#held.trimStart();
    if (this.#hasThought) this.#shown = undefined;
    this.#state = 'text';
  }

  #think(isEnd: boolean): void {
    const text = this.#held;
    const close = earliest(text, this.#form?.close ?? []);
    if (close) {
      this.#say(text.slice(0, close.at));
      // The mark of an answer ends the thoughts before it, and begins it.
      this.#held = text.slice(close.at + close.mark.length);
      this.#hasMark ||= close.mark.endsWith('final<|message|>');
      this.#state = 'start';
      return;
    }
    const kept = isEnd ? 0 : heldBack(text, this.#form?.close ?? []);
    this.#say(text.slice(0, text.length - kept));
    this.#held = text.slice(text.length - kept);
  }

  #say(text: string): void {
    const said = this.#hasThought ? text : text.replace(/^\n/, '');
    this.#hasThought ||= text !== '';
    if (said !== '') this.#emit({ type: 'thinking', text: said });
  }

  #speak(isEnd: boolean): void {
    const text = this.#held;
    if (text === '') return;
    if (this.#shown !== undefined && this.#closesThoughts(text, isEnd)) return;
    const marks = [...(this.#shown === undefined ? [] : loneCloses), ...(this.#hasMark ? endMarks : [])];
    const kept = isEnd || marks.length === 0 ? 0 : heldBack(text, marks);
    this.#held = text.slice(text.length - kept);
    let said = text.slice(0, text.length - kept);
    if (this.#hasMark) for (const mark of endMarks) said = said.replaceAll(mark, '');
    if (this.#shown !== undefined) this.#shown += said;
    if (said !== '') this.#emit({ type: 'text', text: said });
  }

  /** Looks for the end of thoughts that had no beginning. @returns whether it was found, or its place is not yet judged */
  #closesThoughts(text: string, isEnd: boolean): boolean {
    const close = earliest(text, loneCloses);
    if (!close) return false;
    const after = close.at + close.mark.length;
    // The character behind the mark decides.
    if (after === text.length && !isEnd) return true;
    const before = (this.#shown ?? '') + text.slice(0, close.at);
    if (!endsThoughts(before, text.slice(after), close.mark)) {
      this.#shown = undefined;
      return false;
    }
    const rest = text.slice(0, close.at);
    if (rest !== '') this.#emit({ type: 'text', text: rest });
    this.#emit({ type: 'textWasThinking' });
    this.#hasThought = true;
    this.#held = text.slice(after);
    this.#state = 'start';
    return true;
  }
}

const hasStart = (text: string, mark: string): boolean =>
  text.slice(0, mark.length).toLowerCase() === mark.toLowerCase();

const isBeginning = (text: string): boolean =>
  [...thoughtForms.map(({ open }) => open), ...answerMarks].some((mark) => hasStart(mark, text));

function earliest(text: string, marks: readonly string[]): { readonly at: number; readonly mark: string } | undefined {
  if (!mayHoldMark(text)) return undefined;
  const lower = text.toLowerCase();
  let found: { at: number; mark: string } | undefined;
  for (const mark of marks) {
    const at = lower.indexOf(mark.toLowerCase());
    if (at !== -1 && (!found || at < found.at || (at === found.at && mark.length > found.mark.length)))
      found = { at, mark };
  }
  return found;
}

/** Length of the longest end of a text that may begin a mark. */
function heldBack(text: string, marks: readonly string[]): number {
  if (!mayHoldMark(text.slice(-longest))) return 0;
  const most = Math.min(text.length, Math.max(...marks.map(({ length }) => length)) - 1);
  for (let length = most; length > 0; length -= 1) {
    const end = text.slice(text.length - length);
    if (marks.some((mark) => hasStart(mark, end))) return length;
  }
  return 0;
}

/** Whether a mark ends thoughts. An answer may also name the mark in code, in a quotation, or as a word of a sentence. */
function endsThoughts(before: string, after: string, mark: string): boolean {
  const isInCode = (before.split('`').length - 1) % 2 === 1;
  const opening = mark.replace('/', '').toLowerCase();
  if (isInCode || before.toLowerCase().includes(opening)) return false;
  const [last = '', next = ''] = [before.at(-1), after[0]];
  if (last === '' || last === '\n' || next === '' || next === '\n' || next === '\r') return true;
  return /\S/.test(last) && /\S/.test(next) && !/["'“”‘’(`]/.test(last + next);
}
