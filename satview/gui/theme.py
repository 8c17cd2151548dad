"""The light and the dark theme: colours of surfaces and text, and the palette, style sheet and icons made from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from PySide6 import QtCore
from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPalette, QPixmap, QPixmapCache
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QWidget

from satview.base.named_files import resource_path
from satview.session.settings import HATCH_ALWAYS, HATCH_PRINT, PRINT, STANDARD, Settings


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of everything except data, as 0xRRGGBB, and the settings that affect data colours.

    Attributes:
        is_dark: True to use the data colours for dark backgrounds.
        window: Background behind panels.
        panel: Background of panels, menus and headers.
        base: Background of lanes and lists.
        alternate: Background of every second row.
        line: Separator lines.
        text, dim, faint: Text, in descending importance.
        accent: Selection, links and focus.
        on_accent: Text on the accent colour.
        warning, error: Text and marks about problems.
        cursor_a, cursor_b: The two cursors.
        mark: Bookmarks and notes.
        hit: Search hits.
        palette: Data colours, one of `session.settings.PALETTES`.
        looks: The user's changes to state colours, in the format of `colours.read_looks`.
        is_hatched: True to hatch states in addition to colouring them.
        text_percent: Text size.
    """

    is_dark: bool
    window: int
    panel: int
    base: int
    alternate: int
    line: int
    text: int
    dim: int
    faint: int
    accent: int
    on_accent: int
    warning: int
    error: int
    cursor_a: int
    cursor_b: int
    mark: int
    hit: int
    palette: str = STANDARD
    looks: str = ""
    is_hatched: bool = False
    text_percent: int = 100

    def tone(self, name: str) -> int:
        """Return the colour of the severity `error` or `warning`; for any other name the colour of dim text."""
        return {"error": self.error, "warning": self.warning}.get(name, self.dim)

    def px(self, size: int) -> int:
        """Return a text size in pixels, scaled by `text_percent`."""
        return max(1, round(size * self.text_percent / 100))


LIGHT: Final = Theme(
    is_dark=False, window=0xEFF1F4, panel=0xF7F8FA, base=0xFFFFFF, alternate=0xF8F9FB, line=0xDDE1E7,
    text=0x1C212B, dim=0x596273, faint=0x8B93A3, accent=0x2563C9, on_accent=0xFFFFFF, warning=0x935C00, error=0xC0342B,
    cursor_a=0x0B7285, cursor_b=0xA61E4D, mark=0x7048B6, hit=0xC2255C,
)  # fmt: skip
DARK: Final = Theme(
    is_dark=True, window=0x16181C, panel=0x1F2228, base=0x1A1C21, alternate=0x1D2025, line=0x30343C,
    text=0xDFE3EA, dim=0x9DA5B4, faint=0x6C7484, accent=0x6CA4F8, on_accent=0x0E1420, warning=0xE2B04A, error=0xF0746A,
    cursor_a=0x4DD0E1, cursor_b=0xF48FB1, mark=0xB39DDB, hit=0xF06292,
)  # fmt: skip


THEME_SETTINGS: Final = (
    "window/theme", "window/text_percent", "swimlane/palette", "swimlane/state_looks", "swimlane/hatching",
)  # fmt: skip
_DARK_BELOW: Final = 128  # lightness of 255
_USUAL_SIZE: Final = "satview_usual_size"  # application property: the system's text size, set once it is scaled
_IS_APPLIED: Final = "satview_theme"


def colour(rgb: int, alpha: int = 255) -> QColor:
    """Return 0xRRGGBB as a Qt colour."""
    return QColor(rgb >> 16 & 0xFF, rgb >> 8 & 0xFF, rgb & 0xFF, alpha)


def css(rgb: int) -> str:
    """Return 0xRRGGBB in style sheet notation."""
    return f"#{rgb:06x}"


def theme_of(settings: Settings) -> Theme:
    """Return the theme of the settings: light, dark, or that of the system; the print palette is always light."""
    theme_name, palette = settings.text("window/theme"), settings.text("swimlane/palette")
    is_dark = (theme_name == "dark" or (theme_name == "system" and _is_system_dark())) and palette != PRINT
    hatching = settings.text("swimlane/hatching")
    return replace(
        DARK if is_dark else LIGHT,
        palette=palette,
        looks=settings.text("swimlane/state_looks"),
        is_hatched=hatching == HATCH_ALWAYS or (hatching == HATCH_PRINT and palette == PRINT),
        text_percent=settings.number("window/text_percent"),
    )


def _is_system_dark() -> bool:
    app = QApplication.instance()
    if app is None or not app.property(_IS_APPLIED):
        # No theme is applied yet, so the palette is the system's, which some systems set without a colour scheme.
        return QGuiApplication.palette().window().color().lightness() < _DARK_BELOW
    return QGuiApplication.styleHints().colorScheme() is QtCore.Qt.ColorScheme.Dark


def apply(app: QApplication, theme: Theme) -> None:
    """Apply the palette, style sheet and text size of a theme to the application."""
    usual = app.property(_USUAL_SIZE)
    if usual is None and theme.text_percent != 100:
        usual = app.font().pointSizeF()
        app.setProperty(_USUAL_SIZE, usual)
    if usual is not None:
        font = app.font()
        if usual > 0 and font.pointSizeF() != usual * theme.text_percent / 100:
            font.setPointSizeF(usual * theme.text_percent / 100)
            app.setFont(font)
    app.setProperty(_IS_APPLIED, True)
    app.setPalette(_palette(theme))
    app.setStyleSheet(_style_sheet(theme))


def _palette(theme: Theme) -> QPalette:
    role = QPalette.ColorRole
    palette = QPalette()
    for rgb, roles in (
        (theme.window, (role.Window, role.Shadow)),
        (theme.panel, (role.Button, role.ToolTipBase, role.Light)),
        (theme.base, (role.Base,)),
        (theme.alternate, (role.AlternateBase,)),
        (theme.line, (role.Mid, role.Midlight, role.Dark)),
        (theme.text, (role.WindowText, role.Text, role.ButtonText, role.ToolTipText)),
        (theme.faint, (role.PlaceholderText,)),
        (theme.error, (role.BrightText,)),
        (theme.accent, (role.Highlight, role.Link, role.LinkVisited, role.Accent)),
        (theme.on_accent, (role.HighlightedText,)),
    ):
        for palette_role in roles:
            palette.setColor(palette_role, colour(rgb))
    for palette_role in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, palette_role, colour(theme.faint))
    return palette


def _style_sheet(theme: Theme) -> str:
    line, panel, base, text, dim = css(theme.line), css(theme.panel), css(theme.base), css(theme.text), css(theme.dim)
    accent, window, faint = css(theme.accent), css(theme.window), css(theme.faint)
    hover = css(0xE6EAF1 if not theme.is_dark else 0x2A2F38)
    selected = css(0xD6E4FB if not theme.is_dark else 0x263B5C)
    shipped, tone = resource_path("icons").as_posix(), "dark" if theme.is_dark else "light"
    thumb = css(0xC4CAD4 if not theme.is_dark else 0x444A56)
    return f"""
    QMainWindow, QDialog {{ background: {window}; }}
    QMainWindow::separator {{ background: {window}; width: 5px; height: 5px; }}
    QMainWindow::separator:hover {{ background: {accent}; }}
    QMenuBar {{ background: {panel}; color: {text}; border-bottom: 1px solid {line}; padding: 1px 4px; }}
    QMenuBar::item {{ padding: 4px 8px; background: transparent; border-radius: 4px; }}
    QMenuBar::item:selected {{ background: {hover}; }}
    QMenu {{ background: {panel}; color: {text}; border: 1px solid {line}; padding: 4px; }}
    QMenu::item {{ padding: 5px 24px 5px 24px; border-radius: 4px; }}
    QMenu::item:selected {{ background: {selected}; color: {text}; }}
    QMenu::item:disabled {{ color: {faint}; background: transparent; }}
    QMenu::separator {{ height: 1px; background: {line}; margin: 4px 8px; }}
    QToolBar {{ background: {panel}; border: none; border-bottom: 1px solid {line}; padding: 3px 6px; spacing: 2px; }}
    QToolBar::separator {{ background: {line}; width: 1px; margin: 4px 5px; }}
    QToolButton {{ border: none; border-radius: 4px; padding: 4px; color: {text}; background: transparent; }}
    QToolButton:disabled {{ color: {faint}; }}
    QToolButton:hover, QToolButton:focus {{ background: {hover}; }}
    QToolButton:pressed, QToolButton:checked {{ background: {selected}; }}
    QStatusBar {{ background: {panel}; color: {dim}; border-top: 1px solid {line}; }}
    QStatusBar::item {{ border: none; }}
    QStatusBar QLabel {{ color: {dim}; padding: 2px 8px; }}
    QToolButton#live {{ font-weight: 600; padding: 1px 8px; color: {dim}; }}
    QToolButton#live[state="busy"] {{ color: {css(theme.error)}; }}
    QToolButton#verdicts[state="error"] {{ color: {css(theme.error)}; }}
    QToolButton#verdicts[state="warning"] {{ color: {css(theme.warning)}; }}
    QDockWidget {{ color: {text}; font-weight: 600; }}
    QDockWidget::title {{ background: {panel}; padding: 6px 8px; border-bottom: 1px solid {line}; }}
    QToolButton[role="summary"] {{ color: {dim}; padding: 4px 8px; }}
    QToolButton[role="summary"][state="error"] {{ color: {css(theme.error)}; }}
    QToolButton[role="summary"][state="warning"] {{ color: {css(theme.warning)}; }}
    QToolButton[role="summary"]:hover {{ background: {hover}; }}
    QWidget#drawer {{ background: {panel}; border-top: 1px solid {line}; }}
    QToolButton[role="topic"] {{ color: {dim}; padding: 5px 10px; border-radius: 0;
        border-bottom: 2px solid transparent; }}
    QToolButton[role="topic"]:hover {{ color: {text}; }}
    QToolButton[role="topic"]:checked {{ background: transparent; color: {text}; font-weight: 600;
        border-bottom: 2px solid {accent}; }}
    QLabel[role="answers"] {{ color: {dim}; padding-left: 14px; }}
    QTabBar {{ background: {window}; qproperty-elideMode: ElideNone; qproperty-usesScrollButtons: true; }}
    QTabBar::tab {{ background: transparent; color: {dim}; padding: 6px 9px; border: none;
        border-bottom: 2px solid transparent; }}
    QTabBar::tab:selected {{ color: {text}; border-bottom: 2px solid {accent}; }}
    QTabBar::tab:hover {{ color: {text}; }}
    QTabWidget::pane {{ border: none; border-top: 1px solid {line}; }}
    QTreeView, QTableView, QListView, QTextBrowser {{ background: {base}; color: {text};
        border: 1px solid {base}; outline: none;
        selection-background-color: {selected}; selection-color: {text};
        alternate-background-color: {css(theme.alternate)}; }}
    QTreeView:focus, QTableView:focus, QListView:focus, QTextBrowser:focus {{ border: 1px solid {accent}; }}
    QTreeView::item {{ padding: 2px 2px; border: none; }}
    QTreeView::item:hover, QListView::item:hover {{ background: {hover}; }}
    QTreeView::item:selected, QTableView::item:selected,
    QListView::item:selected {{ background: {selected}; color: {text}; }}
    QTableView::item {{ padding: 0 6px; border: none; }}
    QHeaderView QCheckBox {{ background: {panel}; color: {dim}; padding: 0 2px 0 8px; }}
    QHeaderView {{ background: {panel}; border: none; }}
    QHeaderView::section {{ background: {panel}; color: {dim}; border: none; border-right: 1px solid {line};
        border-bottom: 1px solid {line}; padding: 4px 6px; font-weight: 500; }}
    QLineEdit, QPlainTextEdit {{ background: {base}; color: {text};
        border: 1px solid {line}; border-radius: 4px;
        padding: 4px 6px; selection-background-color: {accent}; selection-color: {css(theme.on_accent)}; }}
    QLineEdit:focus, QPlainTextEdit:focus {{ border: 1px solid {accent}; }}
    QAbstractSpinBox {{ background: {base}; color: {text}; border: 1px solid {line}; border-radius: 4px;
        padding: 2px 0; selection-background-color: {accent}; selection-color: {css(theme.on_accent)}; }}
    QAbstractSpinBox:focus {{ border: 1px solid {accent}; }}
    QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ border: none; width: 20px; }}
    QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover {{ background: {hover}; }}
    QAbstractSpinBox::up-arrow {{ image: url({shipped}/up-{tone}.svg); width: 9px; height: 9px; }}
    QAbstractSpinBox::down-arrow {{ image: url({shipped}/open-{tone}.svg); width: 9px; height: 9px; }}
    QAbstractSpinBox::up-arrow:off, QAbstractSpinBox::down-arrow:off {{ image: none; }}
    QLineEdit:disabled, QPlainTextEdit:disabled, QAbstractSpinBox:disabled, QCheckBox:disabled {{ color: {faint}; }}
    QPushButton {{ background: {panel}; color: {text}; border: 1px solid {line}; border-radius: 4px;
        padding: 5px 14px; }}
    QPushButton:hover {{ background: {hover}; }}
    QPushButton:pressed {{ background: {selected}; }}
    QPushButton:disabled {{ color: {faint}; }}
    QPushButton[primary="true"] {{ background: {accent}; color: {css(theme.on_accent)}; border: 1px solid {accent}; }}
    QPushButton[primary="true"]:disabled {{ background: {line}; color: {faint}; border-color: {line}; }}
    QComboBox {{ background: {panel}; color: {text}; border: 1px solid {line}; border-radius: 4px; padding: 4px 8px;
        min-height: 16px; }}
    QComboBox:hover {{ background: {hover}; }}
    QComboBox:focus {{ border-color: {accent}; }}
    QComboBox:disabled {{ color: {faint}; }}
    QComboBox::drop-down {{ border: none; width: 20px; }}
    QComboBox::down-arrow {{ image: url({shipped}/open-{tone}.svg); width: 10px; height: 10px; }}
    QComboBox QAbstractItemView {{ background: {panel}; border: 1px solid {line}; padding: 2px; }}
    QPushButton[flat="true"] {{ border: none; background: transparent; color: {accent}; padding: 3px 6px; }}
    QPushButton[flat="true"]:hover {{ background: {hover}; }}
    QPushButton[flat="true"]:disabled {{ color: {faint}; }}
    QPushButton[row="true"] {{ border: none; background: transparent; text-align: left; padding: 4px 6px; }}
    QPushButton[row="true"]:hover {{ background: {hover}; }}
    QScrollBar:vertical {{ background: {base}; width: 12px; margin: 0; }}
    QScrollBar:horizontal {{ background: {base}; height: 12px; margin: 0; }}
    QScrollBar::handle {{ background: {thumb}; border-radius: 4px; margin: 2px; min-height: 24px; min-width: 24px; }}
    QScrollBar::handle:hover {{ background: {faint}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QProgressBar {{ background: {line}; border: none; border-radius: 3px; max-height: 6px; }}
    QProgressBar::chunk {{ background: {accent}; border-radius: 3px; }}
    QToolTip {{ background: {panel}; color: {text}; border: 1px solid {line}; padding: 4px; }}
    QTreeView::indicator, QCheckBox::indicator {{ width: 12px; height: 12px; border: 1px solid {faint};
        border-radius: 3px; background: {base}; }}
    QTreeView::indicator:checked, QCheckBox::indicator:checked {{ background: {accent}; border-color: {accent};
        image: url({shipped}/check-{tone}.svg); }}
    QTreeView::indicator:indeterminate {{ background: {accent}; border-color: {accent};
        image: url({shipped}/dash-{tone}.svg); }}
    QTreeView::branch {{ background: {base}; }}
    QTreeView::branch:closed:has-children {{ image: url({shipped}/closed-{tone}.svg); }}
    QTreeView::branch:open:has-children {{ image: url({shipped}/open-{tone}.svg); }}
    QDockWidget {{ titlebar-close-icon: url({shipped}/dock-close.svg);
        titlebar-normal-icon: url({shipped}/dock-float.svg); }}
    QDockWidget::close-button, QDockWidget::float-button {{ border: none; border-radius: 3px; padding: 1px;
        background: transparent; }}
    QDockWidget::close-button:hover, QDockWidget::float-button:hover {{ background: {hover}; }}
    QAbstractScrollArea::corner {{ background: {base}; }}
    #hoverCard {{ background: {panel}; color: {text}; border: 1px solid {faint}; border-radius: 6px;
        padding: 7px 10px; }}
    QLabel[role="title"] {{ font-size: {theme.px(20)}px; font-weight: 600; color: {text}; }}
    QLabel[role="dim"] {{ color: {dim}; }}
    QLabel[role="faint"] {{ color: {faint}; }}
    QLabel[role="head"] {{ background: {panel}; color: {faint}; border-right: 1px solid {line};
        border-bottom: 1px solid {line}; padding-left: 18px; }}
    QLabel[role="head"][active="true"] {{ color: {css(theme.accent)}; font-weight: 600; }}
    QLabel[role="warning"] {{ color: {css(theme.warning)}; }}
    QLabel[role="error"] {{ color: {css(theme.error)}; }}
    QFrame[role="card"] {{ background: {panel}; border: 1px solid {line}; border-radius: 8px; }}
    QFrame[role="floating"] {{ background: {panel}; border: 1px solid {faint}; border-radius: 8px; }}
    """


def restyle(widget: QWidget, name: str, value: str) -> None:
    """Set a widget property that style sheets use in selectors, and apply the style sheet to the widget again."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


# Icons from `resources/icons`: line drawings, with `currentColor` replaced by a colour of the theme.


_SIZE_PX = 18


@cache
def _drawing(name: str) -> str:
    return resource_path(f"icons/{name}.svg").read_text(encoding="utf-8")


def icon(name: str, theme: Theme, size_px: int = 0) -> QIcon:
    """Return an icon in the colours of a theme, for device pixel ratios 1 and 2; `size_px` 0 is the toolbar size."""
    drawn_icon, size_px = QIcon(), size_px or theme.px(_SIZE_PX)
    for ratio in (1, 2):
        drawn = _pixmap(_drawing(name).replace("currentColor", "#000"), size_px, ratio)
        for mode, rgb in ((QIcon.Mode.Normal, theme.dim), (QIcon.Mode.Disabled, theme.line)):
            drawn_icon.addPixmap(_tinted(drawn, rgb), mode)
    return drawn_icon


def app_icon() -> QIcon:
    """Return the icon of the application."""
    drawn_icon = QIcon()
    for size_px in (16, 32, 64, 128):
        drawn_icon.addPixmap(_pixmap(_drawing("satview"), size_px, 1))
    return drawn_icon


def _tinted(drawn: QPixmap, rgb: int) -> QPixmap:
    """Return a copy of a drawing in one colour; ten times as fast as rendering the SVG again."""
    pixmap = QPixmap(drawn)
    painter = QPainter(pixmap)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(pixmap.rect(), QColor(rgb))
    painter.end()
    return pixmap


def _pixmap(drawing: str, size_px: int, ratio: int) -> QPixmap:
    """Return an SVG drawing as a pixmap, cached for all windows."""
    key = f"satview {size_px} {ratio} {drawing}"
    cached = QPixmap()
    if QPixmapCache.find(key, cached):
        return cached
    pixmap = QPixmap(size_px * ratio, size_px * ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(drawing.encode())).render(painter, QRectF(0, 0, size_px * ratio, size_px * ratio))
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    QPixmapCache.insert(key, pixmap)
    return pixmap
