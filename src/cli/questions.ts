/** Shows questions of agents in a terminal and reads the typed answers. */
import {
  checkContent,
  fieldsOf,
  type QuestionAnswer,
  type QuestionContent,
  type QuestionField,
  type QuestionForm,
} from '../protocol/index.ts';
import type { Output } from './output.ts';
import { inLine } from './render.ts';

type Colors = Output['colors'];
type Ask = (words: string) => Promise<string>;

/** Author and message of a question. Foreign text is behind a gutter, so it cannot imitate another question. */
export function questionLines({ source, from, message, url }: QuestionForm, { yellow, bold, dim }: Colors): string[] {
  const author = source === 'mcp' ? `The MCP server ${from}` : from;
  const gutter = dim('  │ ');
  const link = url === undefined ? [] : [url, `host: ${new URL(url).host}`];
  return [
    `${yellow('?')} ${bold(inLine(author))} asks ${dim('(never answer with a password or key)')}`,
    ...[...(message ?? '').split('\n').filter((line) => line !== ''), ...link].map((line) => gutter + inLine(line)),
  ];
}

/** One field with its numbered choices. */
export function fieldLines(field: QuestionField, { bold, dim }: Colors): string[] {
  const { title, description = '', choices, kind, isRequired, isFree } = field;
  const hint = [
    ...(kind === 'many' ? ['numbers, with commas'] : []),
    ...(kind === 'boolean' ? ['y or n'] : []),
    ...(isFree ? ['or your own words'] : []),
    isRequired ? 'an empty line declines' : 'an empty line skips',
  ].join('; ');
  return [
    `  ${bold(inLine(title))}${description === title ? '' : `  ${inLine(description)}`} ${dim(`(${hint})`)}`,
    ...choices.map(
      ({ label, description: means = '' }, index) =>
        `    ${index + 1}  ${inLine(label)}${means === '' ? '' : dim(`: ${inLine(means)}`)}`,
    ),
  ];
}

/** The typed text as an answer; undefined for an empty line. */
export function typedAnswer(
  { kind, choices, isFree }: QuestionField,
  line: string,
): QuestionContent[string] | undefined {
  const text = line.trim();
  if (text === '') return undefined;
  const choice = (word: string) => {
    const trimmed = word.trim();
    return choices[Number(trimmed) - 1]?.value ?? choices.find(({ label }) => label === trimmed)?.value ?? trimmed;
  };
  if (kind === 'boolean') return /^(?:y|yes|true)$/i.test(text) ? true : /^(?:n|no|false)$/i.test(text) ? false : text;
  if (kind === 'number' || kind === 'integer') return Number.isFinite(Number(text)) ? Number(text) : text;
  if (kind !== 'many') return choice(text);
  // A sentence with commas is one answer.
  const parts = text.split(',');
  const isList = parts.every((part) => choices.some(({ value }) => value === choice(part)));
  return isList || !isFree ? [...new Set(parts.map(choice))] : [text];
}

/** Asks each field of a question, and asks again after an invalid answer. @throws the error of `ask` */
export async function askFields(form: QuestionForm, ask: Ask, output: Pick<Output, 'colors' | 'question'>) {
  const { colors } = output;
  const put = (lines: readonly string[]) => ask(output.question([...lines, '  › '].join('\n')));
  const introduction = ['', ...questionLines(form, colors)];
  if (form.url !== undefined) {
    const line = await put([...introduction, '  Open the address yourself. [y]es: done; [n]o: decline']);
    return { action: /^y(es)?$/i.test(line.trim()) ? 'accept' : 'decline' } satisfies QuestionAnswer;
  }
  const content: Record<string, QuestionContent[string]> = {};
  let before = introduction;
  for (const field of fieldsOf(form)) {
    for (;;) {
      const value = typedAnswer(field, await put([...before, ...fieldLines(field, colors)]));
      before = [];
      if (value === undefined && field.isRequired) return { action: 'decline' } satisfies QuestionAnswer;
      if (value === undefined) break;
      content[field.name] = value;
      const checked = checkContent(form, content);
      if (checked.ok || checked.field !== field.name) break;
      before = [`  ${colors.red(inLine(checked.problem))}`];
    }
  }
  return { action: 'accept', content } satisfies QuestionAnswer;
}
