(() => {
  // Without what is never text. The copy has no window: it loads and runs nothing.
  const MOST = 4 * 1024 * 1024;
  const inert = document.implementation.createHTMLDocument('');
  const root = document.documentElement ? inert.importNode(document.documentElement, true) : inert.documentElement;
  for (const node of root.querySelectorAll('script,style,noscript,template,svg,canvas,iframe,object,link,meta')) node.remove();
  for (const node of root.querySelectorAll('a[href]')) node.setAttribute('href', node.getAttribute('href') && absolute(node.getAttribute('href')));
  function absolute(href) {
    try { return new URL(href, document.baseURI).href; } catch { return href; }
  }
  const links = new Map();
  for (const link of document.links) {
    if (links.size >= 1000) break;
    const url = link.href.split('#')[0];
    const text = link.textContent.trim().replace(/\s+/g, ' ').slice(0, 80);
    if (/^https?:/.test(url) && url !== location.href.split('#')[0] && text && !links.has(url)) links.set(url, text);
  }
  const isHtml = /html|xml/.test(document.contentType);
  const plain = isHtml ? null : (document.body || document.documentElement).innerText;
  const html = isHtml ? root.outerHTML : '';
  const entry = performance.getEntriesByType('navigation')[0];
  return {
    url: location.href,
    title: document.title.trim().replace(/\s+/g, ' ').slice(0, 300),
    status: (entry && entry.responseStatus) || 0,
    html: html.slice(0, MOST),
    text: plain && plain.slice(0, MOST),
    cut: html.length > MOST || (plain || '').length > MOST,
    links: [...links].map(([url, text]) => ({ text, url: url.slice(0, 2000) })),
  };
})()
