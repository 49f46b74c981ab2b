/** Advice for a person whose model server hands on tool calls as text. */
export const parserAdvice =
  'The tool parser of the model server is off or does not fit the model (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice and --tool-call-parser).';

/** Note to a model that has printed a call. */
export const printedCallNote =
  'Your last answer printed a tool call as text, so nothing was run. Call the tool through the tool interface instead; if you cannot, say so in words.';

/** Longer answers are not judged. */
const mostChars = 262_144;

/** Name of a tool in a notation; models put a namespace before it and a number behind it. */
const name = '(?:functions\\.)?(?<name>[\\w.-]+?)(?::\\d+)?';
const json = '\\s*[{[][^]*';

/**
 * Notations of chat templates that begin with a mark, from the mark to the name: Hermes and Qwen, Qwen Coder and Seed, Llama, Mistral,
 * DeepSeek, Kimi, GLM, MiniMax and Claude, Granite and Phi, Cohere, gpt-oss, Nemotron, Firefunction, Functionary, Gemma, LFM.
 */
const openings: readonly string[] = [
  `(?:<[\\w:|｜▁]*>\\s*)*<function=${name}>[^]*`,
  `(?:<[\\w:|｜▁]*>\\s*)*<[\\w:|｜]*invoke name="${name}">[^]*`,
  `<(?:tool_call|function_call|tool)>\\s*${name}\\s*(?:<arg_key>|\\{|<\\/)[^]*`,
  `<tool_call name="${name}">[^]*`,
  `<\\|python_tag\\|>\\s*${name}(?:\\.call)?\\([^]*`,
  `\\[TOOL_CALLS\\]\\s*${name}\\s*(?:\\[CALL_ID\\][\\w-]*)?(?:\\[ARGS\\])?${json}`,
  `(?:<[|｜]tool[▁_ ]calls[▁_ ]begin[|｜]>\\s*)?<[|｜]tool[▁_ ]call[▁_ ]begin[|｜]>(?:function<[|｜]tool[▁_ ]sep[|｜]>)?\\s*${name}\\s*(?:<[|｜]|\`\`\`)[^]*`,
  `(?:<\\|tool_calls_section_begin\\|>\\s*)?<\\|tool_call_begin\\|>\\s*${name}\\s*<\\|tool_call_argument_begin\\|>[^]*`,
  `(?:<\\|start\\|>assistant)?(?:<\\|channel\\|>)?(?:commentary|analysis)\\s*to=${name}\\b[^]*`,
  `<\\|start\\|>assistant\\s*to=${name}\\b[^]*`,
  `>>>${name}\\n${json}`,
  `<start_function_call>call:${name}\\{[^]*`,
  `\`\`\`(?:tool_code|tool_call|python)\\s+(?:print\\()?${name}\\([^]*\`\`\``,
  `(?:<\\|tool_call_start\\|>|<function_calls>)\\s*\\[?${name}\\([^]*`,
  `\\[${name}\\(\\s*(?:\\w+\\s*=[^]*)?\\)\\]`,
  `Action:\\s*${name}\\s*\\n+Action Input:[^]*`,
];
const marked = openings.map((opening) => new RegExp(`^${opening}$`, 'u'));

/** Marks around a call in JSON; each notation has some. */
const wrappings: readonly RegExp[] = [
  /^(?:<[^<>\s]{1,48}>|\[TOOL_CALLS\]|\[AVAILABLE_TOOLS\]|functools|Action:)/i,
  /(?:<[^<>\s]{1,48}>|\[\/TOOL_CALLS\])$/i,
  /^```(?:json|tool_call|tool_code|tool)?/i,
  /```$/,
];
/** Marks around one call that are removed; each removal reads the text once. */
const mostMarks = 16;

/** Ends of marked notations: text behind the last of them makes the answer more than a call. */
const closings =
  /(?:<\/(?:tool_calls?|function|function_calls?|tool|[\w:|｜]*invoke|minimax:tool_call|seed:tool_call)>|<[|｜][^<>|｜]*end[|｜]>|<\|call\|>|<end_function_call>|\[\/TOOL_CALLS\])(?!\s*<)\s*(?=\S)/i;

/**
 * Finds the offered tool whose call is the whole text of an answer, in a notation that some chat template produces. Servers whose
 * tool parser is off, or fits another model, hand it on like this.
 * @returns the name of the tool; undefined for any other text
 */
export function printedCall(answer: string, toolNames: readonly string[]): string | undefined {
  const text = answer.trim();
  // Every notation ends with a bracket, a mark or a fence.
  if (!/[}\])>`]$/.test(text) || text.length > mostChars || toolNames.length === 0) return undefined;
  const offered = (found: string | undefined) => toolNames.find((tool) => found !== undefined && isSame(tool, found));
  for (const pattern of marked) {
    const tool = offered(pattern.exec(text)?.groups?.['name']);
    if (tool !== undefined && !closings.test(text)) return tool;
  }
  for (const value of jsonIn(text)) {
    const tool = offered(nameIn(value));
    if (tool !== undefined) return tool;
  }
  return undefined;
}

const isSame = (tool: string, found: string): boolean => plainToolName(tool) === plainToolName(found);

/** Namespaces that models put before names of tools. */
const namespaces = /^(?:functions|function|tools|tool|default_api|multi_tool_use)[.:/]/i;

/** Characters that models put behind a name: the channel of gpt-oss, a number, empty brackets. */
const afterName = /(?:<\|.*|:\d+|\(\s*\))$/s;

/** Name of a tool without the differences that models make: quotes, namespace, letter case, separators, and words behind it. */
export const plainToolName = (name: string): string =>
  name
    .trim()
    .replace(/^(["'`])(.*)\1$/s, '$2')
    .replace(afterName, '')
    .replace(namespaces, '')
    .replace(/[_\s.-]/g, '')
    .toLowerCase();

/** The JSON of a text once marks around it are removed; none if anything else remains. */
function jsonIn(text: string): readonly unknown[] {
  const rest = withoutMarks(text);
  // Several calls, each in marks of its own.
  const second = rest.search(/<[^<>\s]{1,48}>\s*[{[]/);
  for (const candidate of second === -1 ? [rest] : [rest, withoutMarks(rest.slice(0, second))]) {
    try {
      return [JSON.parse(candidate)];
    } catch {
      // Not JSON alone.
    }
  }
  return [];
}

function withoutMarks(text: string): string {
  let rest = text.trim();
  for (let before = '', marks = 0; before !== rest && marks < mostMarks; marks += 1) {
    before = rest;
    for (const wrapping of wrappings) rest = rest.replace(wrapping, '').trim();
  }
  return rest;
}

/** Name of the first call in JSON, in the forms that models print. */
function nameIn(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.length === 0 ? undefined : nameIn(value[0]);
  if (typeof value !== 'object' || value === null) return undefined;
  const call = value as Readonly<Record<string, unknown>>;
  if (Array.isArray(call['tool_calls'])) return nameIn(call['tool_calls']);
  for (const inner of ['function', 'function_call', 'tool_call']) {
    if (typeof call[inner] === 'object' && call[inner] !== null) return nameIn(call[inner]);
  }
  const named = [call['name'], call['tool_name'], call['tool'], call['function'], call['action']].find(
    (each) => typeof each === 'string',
  );
  const hasArguments = ['arguments', 'parameters', 'args', 'input', 'tool_input', 'action_input', 'params'].some(
    (field) => field in call,
  );
  if (typeof named === 'string') return hasArguments ? named : undefined;
  const [only, ...others] = Object.entries(call);
  return only && others.length === 0 && typeof only[1] === 'object' && only[1] !== null ? only[0] : undefined;
}
