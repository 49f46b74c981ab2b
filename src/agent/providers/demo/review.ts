/** Reviews of the demo model: it knows a few faults by sight, in lines that a change adds. */
import type { ModelRequest } from '../../model.ts';
import type { Step } from './forms.ts';
import { callFor, toolOf } from './plan.ts';
import { label } from './talk.ts';

const submitTool = 'SubmitReviewDraft';
const mostFiles = 20;
const mostFindings = 20;
/** Longer lines are not code that a person wrote, and would let a pattern take long. */
const longestLine = 500;

interface KnownFault {
  readonly sign: RegExp;
  readonly severity: 'critical' | 'major' | 'minor';
  readonly title: string;
  readonly body: string;
  /** The line without the fault. */
  readonly better?: (line: string) => string;
}

const knownFaults: readonly KnownFault[] = [
  {
    sign: /\beval\s*\(/,
    severity: 'critical',
    title: 'Text is evaluated as a program',
    body: 'The source of the text runs a program with the rights of this process. Parse the text instead.',
  },
  {
    sign: /(?:'|"|`)\s*(?:SELECT|INSERT|UPDATE|DELETE)\b.*(?:\$\{|['"]\s*\+)/i,
    severity: 'critical',
    title: 'A query is built from text',
    body: 'A value with a quotation mark changes the query (SQL injection). Pass it as a parameter.',
  },
  {
    sign: /^\s*for\s*\(.*<=\s*[\w.]+\.length\b/,
    severity: 'major',
    title: 'The loop runs one step too far',
    body: 'The last index is `length - 1`: the last step reads `undefined`.',
    better: (line) => line.replace(/<=(\s*[\w.]+\.length\b)/, '<$1'),
  },
  {
    sign: /\bif\s*\(\s*[\w.]+\s*=\s*[^=>]/,
    severity: 'major',
    title: 'A condition assigns instead of comparing',
    body: 'The condition is the assigned value, so the branch does not depend on the earlier value.',
    better: (line) => line.replace(/(\bif\s*\(\s*[\w.]+\s*)=(\s*[^=>])/, '$1===$2'),
  },
];

interface AddedLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** Words and calls of one answer. */
export interface ReviewAnswer {
  readonly thought: string;
  readonly answer: string;
  readonly calls: readonly ReturnType<typeof callFor>[];
}

/** The next answer of a review: reads the changed files, then submits its comments, then ends. Undefined for any other request. */
export function reviewAnswer(request: ModelRequest): ReviewAnswer | undefined {
  if (!toolOf(request, submitTool)) return undefined;
  const task = request.messages
    .flatMap((message) => userText(message))
    .find((text) => /^# Pull request \d+ at /m.test(text));
  if (task === undefined) return undefined;
  const asked = request.messages.findLastIndex(({ role }) => role === 'user');
  const calls = request.messages.slice(asked).flatMap((each) => (each.role === 'assistant' ? each.toolCalls : []));
  if (calls.some(({ name }) => name === submitTool)) {
    return { thought: 'The draft is handed in.', answer: `${label} I have handed in the review.`, calls: [] };
  }
  const added = addedLines(task);
  const paths = [...new Set(added.map(({ path }) => path))].slice(0, mostFiles);
  if (calls.length === 0 && paths.length > 0 && toolOf(request, 'ReadFile')) {
    const thought = `${label} I read the ${paths.length === 1 ? 'changed file' : `${paths.length} changed files`}.`;
    return { thought, answer: '', calls: paths.map((path, index) => callFor(request, index + 1, readStep(path))) };
  }
  const draft = draftOf(added);
  return {
    thought: `${label} I look for ${knownFaults.length} faults that I know by sight.`,
    answer: '',
    calls: [callFor(request, calls.length + 1, submitStep(draft))],
  };
}

function userText(message: ModelRequest['messages'][number]): string[] {
  if (message.role !== 'user') return [];
  return [message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')];
}

/** Added lines of the diffs in a task, with their numbers in the new file. */
function addedLines(task: string): AddedLine[] {
  const files = task.matchAll(/^### (\S+) \([^)\n]*\)\n(`{3,})diff\n([\s\S]*?)\n\2$/gm);
  return [...files].flatMap(([, path = '', , diff = '']) => addedIn(path, diff));
}

function addedIn(path: string, diff: string): AddedLine[] {
  const added: AddedLine[] = [];
  let line = 0;
  for (const text of diff.split('\n')) {
    const [, start] = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(text) ?? [];
    if (start !== undefined) line = Number(start);
    else if (text.startsWith('+')) added.push({ path, line: line++, text: text.slice(1) });
    else if (!text.startsWith('-')) line += 1;
  }
  return added;
}

function draftOf(added: readonly AddedLine[]) {
  const found = added.flatMap(({ path, line, text }) => {
    if (text.length > longestLine) return [];
    const fault = knownFaults.find(({ sign }) => sign.test(text));
    if (!fault) return [];
    const { severity, title, body, better } = fault;
    const finding = {
      severity,
      title,
      body: `${body}\n\n${label} a rule matched this line.`,
      path,
      oldText: text,
      line,
    };
    return [better ? { ...finding, newText: better(text) } : finding];
  });
  const findings = found.slice(0, mostFindings);
  const count = findings.length === 1 ? '1 finding' : `${findings.length} findings`;
  return {
    summary: `${label} ${count}. I compare lines with ${knownFaults.length} rules and understand nothing.`,
    findings,
  };
}

type Call = Step & { readonly kind: 'call' };

const readStep = (path: string): Call => ({
  kind: 'call',
  title: `read ${path}`,
  tool: 'ReadFile',
  arguments: [[['path', 'file_path'], path]],
  isParallel: true,
});

const submitStep = (draft: object): Call => ({
  kind: 'call',
  title: 'hand in the review',
  tool: submitTool,
  arguments: [],
  json: JSON.stringify(draft),
  isParallel: false,
});
