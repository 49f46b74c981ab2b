/** Names after a fence and extensions of files, by their language. */
const names = {
  xml: ['html', 'xml', 'svg', 'xhtml', 'vue'],
  css: ['css'],
  // The grammar of TypeScript reads JavaScript, and that of C++ reads C.
  typescript: ['ts', 'typescript', 'mts', 'cts', 'tsx', 'js', 'javascript', 'mjs', 'cjs', 'jsx'],
  json: ['json', 'jsonc', 'json5'],
  bash: ['bash', 'sh', 'shell', 'zsh', 'console', 'dockerfile'],
  python: ['py', 'python', 'python3', 'pyi'],
  go: ['go', 'golang'],
  rust: ['rs', 'rust'],
  java: ['java'],
  cpp: ['cpp', 'cc', 'cxx', 'c++', 'hpp', 'hh', 'c', 'h'],
  ruby: ['rb', 'ruby'],
  sql: ['sql', 'postgresql', 'sqlite'],
  yaml: ['yaml', 'yml'],
  markdown: ['md', 'markdown'],
  diff: ['diff', 'patch'],
} as const;

export type LanguageName = keyof typeof names;
export const languageNames = Object.keys(names) as readonly LanguageName[];

const byName = new Map<string, LanguageName>(
  languageNames.flatMap((language) => names[language].map((name) => [name, language] as const)),
);

/** Language named after a fence; null for an unknown one. */
export const languageNamed = (name: string): LanguageName | null => byName.get(name.toLowerCase()) ?? null;

/** Language of a file by its extension; null for an unknown one. */
export const languageOfFile = (path: string): LanguageName | null =>
  languageNamed(/(?:\.|^|\/)([^./\\]+)$/.exec(path)?.[1] ?? '');
