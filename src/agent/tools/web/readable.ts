import { WebError } from './errors.ts';

/** An HTML page made readable. */
export interface ReadablePage {
  readonly title: string;
  readonly text: string;
}

interface WorkerInput {
  /** Base from which libraries are resolved. */
  readonly base: string;
  readonly html: string;
  readonly url: string;
  readonly mode: 'markdown' | 'text';
}

/** A page nests as deep as it likes, and the conversion recurses. */
const resourceLimits = { maxOldGenerationSizeMb: 256, stackSizeMb: 16 };

/**
 * Turns HTML into Markdown, or into text without any mark-up; scripts, styles and forms are left out. Runs in a thread
 * of its own: a page made to keep its reader busy blocks no other work, and ends with `signal`.
 * @throws WebError when the page is too much for it; the reason of `signal` when that aborts
 */
export function readHtml(
  html: string,
  url: string,
  mode: WorkerInput['mode'],
  signal: AbortSignal,
): Promise<ReadablePage> {
  signal.throwIfAborted();
  const workerData: WorkerInput = { base: import.meta.url, html, url, mode };
  const { Worker } = process.getBuiltinModule('node:worker_threads');
  const worker = new Worker(`(${convert})()`, { eval: true, workerData, resourceLimits, env: {}, execArgv: [] });
  return new Promise<ReadablePage>((resolve, reject) => {
    let isOver = false;
    const end = (act: () => void): void => {
      if (isOver) return;
      isOver = true;
      signal.removeEventListener('abort', abort);
      // Only when the thread has gone is everything of it gone.
      worker.terminate().then(act, act);
    };
    const abort = (): void => end(() => reject(signal.reason));
    const tooMuch = (cause: unknown): void =>
      end(() => reject(new WebError('the page cannot be converted; extractMode "raw" shows its source', { cause })));
    signal.addEventListener('abort', abort, { once: true });
    worker.on('message', (page: ReadablePage) => end(() => resolve(page)));
    worker.on('error', tooMuch);
    worker.on('exit', tooMuch);
  });
}

/** Runs in the worker, from its source text: it sees nothing of this file but its own body. */
function convert(): void {
  const { createRequire } = process.getBuiltinModule('node:module');
  const { parentPort, workerData } = process.getBuiltinModule('node:worker_threads');
  const { base, html, url, mode } = workerData as WorkerInput;
  const Turndown: typeof import('turndown') = createRequire(base)('turndown');
  const isMarkdown = mode === 'markdown';
  const service = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', hr: '---' });
  let title = '';

  const absolute = (address: string | null): string => {
    try {
      const { protocol, href } = new URL(address ?? '', url);
      return /^(https?|mailto):$/.test(protocol) ? href : '';
    } catch {
      return '';
    }
  };
  const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();
  const isFirstRow = (row: HTMLElement): boolean => {
    const section = row.parentElement;
    return row === section?.querySelector('tr') && (section.nodeName !== 'TBODY' || !section.previousElementSibling);
  };

  service.remove([
    'script',
    'style',
    'noscript',
    'template',
    'iframe',
    'object',
    'canvas',
    'select',
    'button',
    'textarea',
  ]);
  service.addRule('drawing', { filter: (node) => node.nodeName.toLowerCase() === 'svg', replacement: () => '' });
  service.addRule('title', {
    filter: 'title',
    replacement: (_, node) => {
      title ||= oneLine(node.textContent ?? '');
      return '';
    },
  });
  service.addRule('cell', {
    filter: ['th', 'td'],
    replacement: (content) => ` ${oneLine(content).replaceAll('|', '\\|')} |`,
  });
  service.addRule('row', {
    filter: 'tr',
    replacement: (content, node) => {
      const row = node as HTMLTableRowElement;
      const rule = isMarkdown && isFirstRow(row) ? `\n|${' --- |'.repeat(row.querySelectorAll('th,td').length)}` : '';
      return `\n|${content}${rule}`;
    },
  });
  service.addRule('table', { filter: 'table', replacement: (content) => `\n\n${content.trim()}\n\n` });
  service.addRule('section', { filter: ['thead', 'tbody', 'tfoot'], replacement: (content) => content });
  service.addRule('link', {
    filter: 'a',
    replacement: (content, node) => {
      const text = oneLine(content);
      const href = (node as HTMLElement).getAttribute('href');
      const target = isMarkdown && href !== null && !href.startsWith('#') ? absolute(href) : '';
      return text === '' || target === '' ? content : `[${text}](${target})`;
    },
  });
  service.addRule('image', {
    filter: 'img',
    replacement: (_, node) => {
      const text = oneLine((node as HTMLElement).getAttribute('alt') ?? '');
      const target = isMarkdown ? absolute((node as HTMLElement).getAttribute('src')) : '';
      return target === '' ? text : `![${text}](${target})`;
    },
  });
  if (!isMarkdown) {
    service.escape = (text) => text;
    service.addRule('inline', { filter: ['em', 'i', 'strong', 'b', 'code', 'del'], replacement: (content) => content });
    service.addRule('heading', {
      filter: ['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote'],
      replacement: (content) => `\n\n${content.trim()}\n\n`,
    });
    service.addRule('code block', { filter: 'pre', replacement: (_, node) => `\n\n${node.textContent ?? ''}\n\n` });
  }
  const text = service
    .turndown(html)
    .replace(/^[ \t]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  parentPort?.postMessage({ title, text });
}
