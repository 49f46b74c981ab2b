/** Final answer of the demo model: it repeats the results and adds nothing. */
import type { ModelRequest } from '../../model.ts';
import { isFailed, type Plan, type PlannedStep } from './plan.ts';
import { sample } from './sample.ts';
import { answerTo, label } from './talk.ts';

const mostLines = 10;
const longestLine = 200;

/** The last words of a turn and the thought before them. */
export interface Report {
  readonly thought: string;
  readonly answer: string;
}

/** `said`: the words of `say` steps that were not spoken yet. */
export function reportOf(plan: Plan, request: ModelRequest): Report {
  const isTalk = plan.steps.length === 0;
  const { thought, answer } = isTalk
    ? answerTo(plan.asked)
    : { thought: 'I report the results of the tools.', answer: summary(plan) };
  const words = [answer, ...remarks(plan)].join('\n\n');
  return { thought, answer: formatted(`${label} ${words}`, plan, request) };
}

function remarks({ images, leftOut }: Plan): string[] {
  const seen =
    images === 0
      ? []
      : [`There ${images === 1 ? 'is a picture' : `are ${images} pictures`} in the message; I cannot see pictures.`];
  const unknown = leftOut.map((piece) => `“${oneLine(piece)}”`).join(', ');
  return unknown === '' ? seen : [...seen, `I left out the parts that I do not understand: ${unknown}.`];
}

function summary(plan: Plan): string {
  const spoken = plan.steps
    .filter(({ number }) => number > plan.reached)
    .flatMap(({ step }) => (step.kind === 'say' ? [step.text] : []));
  const calls = plan.steps.filter(({ step }) => step.kind === 'call');
  if (calls.length === 0) return spoken.join('\n\n') || 'I thought about it.';
  const done = calls.filter((step) => step.result !== undefined && !isFailed(step));
  const head = `${done.length} of ${calls.length} ${calls.length === 1 ? 'step' : 'steps'} done.`;
  return [head, ...calls.map((step) => lineOf(step, plan)), ...(plan.hasFailed ? [] : spoken)].join('\n\n');
}

function lineOf(planned: PlannedStep, { hasFailed }: Plan): string {
  const { number, step, isImpossible, call, result } = planned;
  if (step.kind !== 'call') return '';
  const title = `${number}. ${step.title}`;
  if (isImpossible) return `${title}: not done, the tool ${step.tool} is not offered to me here.`;
  if (!call) return `${title}: not done${hasFailed ? ', because a step before it failed' : ''}.`;
  if (result === undefined) return `${title}: ${call.name} was called, but no result came back.`;
  const verdict = isFailed(planned) ? 'failed' : 'done';
  return [`${title}: ${verdict} by ${call.name}, ${measured(result)}`, ...excerpt(result)].join('\n');
}

function measured(result: string): string {
  const count = linesOf(result).length;
  return `${count} ${count === 1 ? 'line' : 'lines'}:`;
}

const linesOf = (result: string): string[] => (result.trim() === '' ? [] : result.trimEnd().split('\n'));

/** Indented, so that it is shown unchanged. */
function excerpt(result: string): string[] {
  const lines = linesOf(result);
  const shown = lines.slice(0, mostLines).map((line) => `    ${oneLine(line)}`);
  const rest = lines.length - shown.length;
  return [...shown, ...(rest > 0 ? [`    … ${rest} more`] : [])];
}

const oneLine = (text: string): string => {
  const line = text.replace(/[\r\n]+/g, ' ');
  return line.length > longestLine ? `${line.slice(0, longestLine).replace(/[\uD800-\uDBFF]$/, '')}…` : line;
};

/** A request for JSON gets JSON: an instance of its schema, or an object that holds the words. */
function formatted(words: string, plan: Plan, { responseFormat }: ModelRequest): string {
  if (responseFormat?.['type'] === 'json_schema') {
    const { schema } = (responseFormat['json_schema'] ?? {}) as { readonly schema?: unknown };
    return JSON.stringify(sample(schema ?? { type: 'object', properties: { answer: {} } }, words));
  }
  if (responseFormat?.['type'] !== 'json_object') return words;
  const steps = plan.steps.flatMap(({ step, call, result }) =>
    step.kind === 'call' ? [{ step: step.title, tool: call?.name ?? step.tool, result: result ?? null }] : [],
  );
  return JSON.stringify({ model: 'demo', answer: words, ...(steps.length > 0 && { steps }) });
}
