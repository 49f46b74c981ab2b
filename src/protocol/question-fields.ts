/** Fields of a question and the check of its answers. Needs no Node and no valibot: the page uses it. */
import { defaults } from './defaults.ts';
import type { QuestionContent, QuestionForm } from './questions.ts';

/** Choice of a field. May contain untrusted text. */
export interface QuestionChoice {
  readonly value: string;
  readonly label: string;
  readonly description?: string | undefined;
}

/** Input field of a question, shared by questions of our agent and forms. */
export interface QuestionField {
  /** Key of the answer. */
  readonly name: string;
  readonly title: string;
  readonly description?: string | undefined;
  readonly kind: 'text' | 'number' | 'integer' | 'boolean' | 'one' | 'many';
  /** Empty for a field without choices. */
  readonly choices: readonly QuestionChoice[];
  /** Accepts free text beside the choices. */
  readonly isFree: boolean;
  readonly isRequired: boolean;
  /** Bounds of a number, of the length of a text, or of the number of choices. */
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  readonly format?: string | undefined;
  readonly preset?: string | number | boolean | readonly string[] | undefined;
}

/** Input fields of a question in order; empty for a link. */
export function fieldsOf({ questions, schema }: Pick<QuestionForm, 'questions' | 'schema'>): readonly QuestionField[] {
  if (questions) {
    return questions.map(({ header, question, options, multiSelect }) => ({
      ...{
        name: header,
        title: header,
        description: question,
        kind: multiSelect ? ('many' as const) : ('one' as const),
      },
      choices: options.map(({ label, description }) => ({ value: label, label, description })),
      ...{ isFree: true, isRequired: true },
    }));
  }
  const required = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => fieldOf(name, field, required.has(name)));
}

type FormField = NonNullable<QuestionForm['schema']>['properties'][string];

function fieldOf(name: string, field: FormField, isRequired: boolean): QuestionField {
  const { title = name, description, default: preset } = field;
  const common = { name, title, description, isRequired, isFree: false, preset };
  if (field.type === 'boolean') return { ...common, kind: 'boolean', choices: [] };
  if (field.type === 'array') {
    const { minItems: min, maxItems: max } = field;
    return { ...common, kind: 'many', choices: choicesOf(field.items), min, max };
  }
  if (field.type === 'string') {
    const choices = choicesOf(field);
    const { minLength: min, maxLength: max, format } = field;
    return { ...common, kind: choices.length > 0 ? 'one' : 'text', choices, min, max, format };
  }
  return { ...common, kind: field.type, choices: [], min: field.minimum, max: field.maximum };
}

interface Offered {
  readonly enum?: readonly string[] | undefined;
  readonly enumNames?: readonly string[] | undefined;
  readonly oneOf?: readonly Titled[] | undefined;
  readonly anyOf?: readonly Titled[] | undefined;
}
interface Titled {
  readonly const: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
}

function choicesOf(offered: Offered): readonly QuestionChoice[] {
  const titled = offered.oneOf ?? offered.anyOf;
  if (titled)
    return titled.map(({ const: value, title = value, description }) => ({ value, label: title, description }));
  return (offered.enum ?? []).map((value, index) => ({ value, label: offered.enumNames?.[index] ?? value }));
}

export type CheckedContent =
  | { readonly ok: true; readonly content: QuestionContent }
  | { readonly ok: false; readonly field: string; readonly problem: string };

/** Checks the answers to a question, without running its author's patterns. @returns the known answers, or the first problem as a sentence */
export function checkContent(form: QuestionForm, content: QuestionContent): CheckedContent {
  const fields = fieldsOf(form);
  const known = new Set(fields.map(({ name }) => name));
  const stray = Object.keys(content).find((name) => !known.has(name));
  if (stray !== undefined) {
    return { ok: false, field: stray, problem: `The question has no such field, only: ${[...known].join(', ')}.` };
  }
  const answers: Record<string, QuestionContent[string]> = {};
  for (const field of fields) {
    const value = Object.hasOwn(content, field.name) ? content[field.name] : undefined;
    const isMissing = value === undefined || value === '' || (Array.isArray(value) && value.length === 0);
    if (isMissing && !field.isRequired) continue;
    const problem = value === undefined || isMissing ? 'An answer is missing.' : problemOf(field, value);
    if (problem !== undefined) return { ok: false, field: field.name, problem };
    if (value !== undefined) answers[field.name] = value;
  }
  return { ok: true, content: answers };
}

function problemOf(field: QuestionField, value: QuestionContent[string]): string | undefined {
  const { kind, choices, isFree, min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = field;
  const isChoice = (text: string) => choices.some((choice) => choice.value === text);
  switch (kind) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'Expected true or false.';
    case 'number':
    case 'integer': {
      if (typeof value !== 'number' || !Number.isFinite(value)) return 'Expected a number.';
      if (kind === 'integer' && !Number.isInteger(value)) return 'Expected a whole number.';
      return value < min || value > max ? `Expected a number: ${rangeOf(field)}.` : undefined;
    }
    case 'many': {
      const texts = typeof value === 'string' && isFree ? [value] : value;
      if (!Array.isArray(texts)) return 'Expected a list of choices.';
      if (new Set(texts).size !== texts.length) return 'A choice is repeated.';
      if (texts.length < min || texts.length > max) return `Expected ${rangeOf(field)} choices.`;
      return texts.every((text) => isChoice(text) || isFree) ? lengthProblem(texts) : 'Expected only offered choices.';
    }
    case 'one':
      if (typeof value !== 'string') return 'Expected one choice.';
      return isChoice(value) || isFree ? lengthProblem([value]) : 'Expected one of the offered choices.';
    case 'text':
      if (typeof value !== 'string') return 'Expected text.';
      if (value.length < min || value.length > max) return `Expected ${rangeOf(field)} characters.`;
      return lengthProblem([value]) ?? formatProblem(field.format, value);
  }
}

const lengthProblem = (texts: readonly string[]): string | undefined =>
  texts.some((text) => text.length > defaults.questions.answerChars)
    ? `Expected at most ${defaults.questions.answerChars} characters.`
    : undefined;

function rangeOf({ min, max }: QuestionField): string {
  if (min === undefined) return `at most ${max}`;
  return max === undefined ? `at least ${min}` : `${min} to ${max}`;
}

const formats: Readonly<Record<string, readonly [check: (text: string) => boolean, words: string]>> = {
  email: [(text) => /^[^\s@]{1,64}@[^\s@]{1,255}$/.test(text), 'an e-mail address'],
  uri: [(text) => URL.canParse(text), 'an address'],
  date: [(text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)), 'a date such as 2026-01-31'],
  'date-time': [(text) => /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text)), 'a time in ISO 8601'],
};

function formatProblem(format: string | undefined, value: string): string | undefined {
  const known = format !== undefined && Object.hasOwn(formats, format) ? formats[format] : undefined;
  return known && !known[0](value) ? `Expected ${known[1]}.` : undefined;
}

/** `Library: zod; Tests: unit, e2e` */
export const contentWords = (content: QuestionContent): string =>
  Object.entries(content)
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(', ') : String(value)}`)
    .join('\n');
