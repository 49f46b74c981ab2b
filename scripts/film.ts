/** Pictures of pages with a caption below them, one after the other, as an animated PNG. Needs `ffmpeg`. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';

interface Size {
  readonly width: number;
  readonly height: number;
}

const captionPx = 44;

const stage = ({ width, height }: Size): string => `<!doctype html><html lang="en"><meta charset="utf-8"><style>
  * { box-sizing: border-box; margin: 0 }
  body { width: ${width}px; height: ${height + captionPx}px; background: #12343b; font: 17px/${captionPx}px system-ui, sans-serif; color: #fff }
  #picture { height: ${height}px; position: relative; overflow: hidden; text-align: center }
  #picture img { height: ${height}px; display: inline-block; vertical-align: top }
  #ring { position: absolute; border: 3px solid #d9480f; border-radius: 8px; display: none }
  #title { position: absolute; inset: 0; display: none; align-content: center; line-height: 1.5 }
  #title b { display: block; font-size: 44px }
  #caption { padding: 0 16px; white-space: nowrap }
</style><div id="picture"><img alt=""><div id="ring"></div><div id="title"><b></b><span></span></div></div><div id="caption"></div>`;

interface Scene {
  readonly picture: string;
  readonly caption: string;
  readonly title: readonly [string, string] | null;
  /** Frame around the pressed element, in the coordinates of the picture. */
  readonly ring: { readonly x: number; readonly y: number; readonly width: number; readonly height: number } | null;
}

interface Frame {
  readonly png: Uint8Array;
  readonly seconds: number;
}

/** Collects frames. */
export class Film {
  readonly #stage: Page;
  readonly #frames: Frame[] = [];

  private constructor(page: Page) {
    this.#stage = page;
  }

  static async begin(browser: Browser, size: Size): Promise<Film> {
    const viewport = { width: size.width, height: size.height + captionPx };
    const page = await browser.newPage({ viewport });
    await page.setContent(stage(size));
    return new Film(page);
  }

  /** Takes a picture of the current page. @param target gets a frame */
  async shot(page: Page, caption: string, seconds: number, target?: Locator): Promise<void> {
    const ring = target ? await target.boundingBox() : null;
    const png = await page.screenshot({ animations: 'disabled', caret: 'hide' });
    await this.#take({ picture: png.toString('base64'), caption, title: null, ring }, seconds);
  }

  /** Words without a picture. */
  title(head: string, words: string, seconds: number): Promise<void> {
    return this.#take({ picture: '', caption: '', title: [head, words], ring: null }, seconds);
  }

  async #take(scene: Scene, seconds: number): Promise<void> {
    await this.#stage.evaluate(show, scene);
    const png = await this.#stage.screenshot({ animations: 'disabled' });
    this.#frames.push({ png, seconds });
  }

  /** Writes the animation. */
  end(file: string): void {
    const directory = mkdtempSync(join(tmpdir(), 'oratorio-film-'));
    try {
      const list = this.#frames.map(({ png, seconds }, n) => {
        writeFileSync(join(directory, `${n}.png`), png);
        return `file ${n}.png\nduration ${seconds}\n`;
      });
      // The list format ignores the duration of the last entry unless a further entry follows.
      writeFileSync(join(directory, 'list'), [...list, `file ${list.length - 1}.png\n`].join(''));
      const palette = 'split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none';
      const input = ['-f', 'concat', '-i', join(directory, 'list'), '-vf', palette, '-fps_mode', 'vfr'];
      execFileSync('ffmpeg', ['-v', 'error', '-y', ...input, '-plays', '0', '-f', 'apng', file], { stdio: 'inherit' });
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }
}

/** Runs in the stage. */
async function show({ picture, caption, title, ring }: Scene): Promise<void> {
  const at = (selector: string): HTMLElement => {
    const found = document.querySelector<HTMLElement>(selector);
    if (!found) throw new Error(`no ${selector}`);
    return found;
  };
  const image = document.images[0];
  if (!image) throw new Error('no image');
  image.style.display = picture === '' ? 'none' : 'inline-block';
  if (picture !== '') {
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
  }
  at('#caption').textContent = caption;
  at('#title').style.display = title ? 'grid' : 'none';
  at('#title b').textContent = title?.[0] ?? '';
  at('#title span').textContent = title?.[1] ?? '';
  const frame = at('#ring').style;
  frame.display = ring ? 'block' : 'none';
  if (!ring) return;
  const inset = 4;
  // All of the frame stays in the picture.
  const left = Math.max(0, ring.x - inset);
  const top = Math.max(0, ring.y - inset);
  frame.left = `${image.offsetLeft + left}px`;
  frame.top = `${top}px`;
  frame.width = `${Math.min(image.offsetWidth, ring.x + ring.width + inset) - left}px`;
  frame.height = `${Math.min(image.offsetHeight, ring.y + ring.height + inset) - top}px`;
}
